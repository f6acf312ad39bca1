// SPDX-License-Identifier: Apache-2.0

// Package repo holds tests of the repository itself: licence lines, layout, links of the documents.
package repo
