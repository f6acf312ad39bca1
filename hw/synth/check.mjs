// SPDX-License-Identifier: Apache-2.0
// Runs a Yosys script in the WebAssembly build: node check.mjs NPM_DIR SCRIPT (from the top of the repository).
// The build sees only the files it is given: hw/rtl and the script.
import { readFileSync, readdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [npmDir, script] = process.argv.slice(2);
const require = createRequire(pathToFileURL(resolve(npmDir, "package.json")));
const { runYosys } = await import(pathToFileURL(require.resolve("@yowasp/yosys")));

// tree returns the files below dir as the nested object that the WebAssembly file system is filled from.
function tree(dir) {
  const files = {};
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    files[name] = statSync(path).isDirectory() ? tree(path) : readFileSync(path);
  }
  return files;
}

const print = (bytes) => {
  if (bytes !== null) process.stdout.write(bytes);
};
const files = { hw: { rtl: tree("hw/rtl") }, "script.ys": readFileSync(script) };
try {
  await runYosys(["-Q", "-T", "-s", "script.ys"], files, { stdout: print, stderr: print, decodeASCII: false });
} catch (err) {
  console.error(`ERROR: ${err?.message ?? err}`);
  process.exit(1);
}
