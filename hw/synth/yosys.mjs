// SPDX-License-Identifier: Apache-2.0
// Runs a Yosys script in the WebAssembly build: node yosys.mjs NPM_DIR SCRIPT [FILE...] (from the top of the repository).
// The build sees only the files it is given: hw/, the script and FILEs (or folders), all at their paths. What the script writes
// below build/ (into the script's folder or a FILE's) is written there.
import { readFileSync, readdirSync, statSync, writeFileSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [npmDir, script, ...inputs] = process.argv.slice(2);
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

const files = { hw: tree("hw") };
for (const path of [script, ...inputs]) {
  const parts = path.split("/");
  const name = parts.pop();
  let dir = files;
  for (const part of parts) dir = dir[part] ??= {};
  dir[name] = statSync(path).isDirectory() ? tree(path) : readFileSync(path);
}

// save writes the files below dir that the script made or changed.
function save(dir, before, path) {
  for (const [name, entry] of Object.entries(dir)) {
    const at = join(path, name);
    if (typeof entry === "string" || entry instanceof Uint8Array) {
      if (entry !== before?.[name]) writeFileSync(at, entry);
    } else {
      save(entry, before?.[name], at);
    }
  }
}

// Yosys writes a few bytes at a time: they are put together, in a buffer that is written when it is full, and at least every second.
const buffer = Buffer.alloc(1 << 16);
let level = 0;
let written = 0;
function flush() {
  for (let at = 0; at < level; ) at += writeSync(1, buffer, at, level - at);
  level = 0;
  written = Date.now();
}
const print = (bytes) => {
  if (bytes === null) return flush();
  for (let at = 0; at < bytes.length; ) {
    const n = Math.min(bytes.length - at, buffer.length - level);
    buffer.set(bytes.subarray(at, at + n), level);
    level += n;
    at += n;
    if (level === buffer.length) flush();
  }
  if (bytes.length > 0 && bytes[bytes.length - 1] === 10 && Date.now() - written > 1000) flush();
};
try {
  const result = await runYosys(["-Q", "-T", "-s", script], files, { stdout: print, stderr: print, decodeASCII: false });
  flush();
  if (result?.build) save(result.build, files.build, "build");
} catch (err) {
  flush();
  console.error(`ERROR: ${err?.message ?? err}`);
  process.exit(1);
}
