# SPDX-License-Identifier: Apache-2.0
.PHONY: generate generate-check

# Everything that follows from hw/regs (committed; generate-check fails when it is out of date).
generate:
	go run ./cmd/regmap

generate-check:
	go run ./cmd/regmap -check
