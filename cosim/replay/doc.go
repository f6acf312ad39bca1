// SPDX-License-Identifier: Apache-2.0

// Package replay gives frames to the receive port of a simulated NIC and pairs each of them with the verdict of
// the RTL, so that it can be compared with the codec of package roce.
//
//   - Feeder feeds a NIC of any simulation.
//   - Session is a simulation of one NIC without queue pairs that takes frames for every address.
//   - Counters are the receive counters, as registers show them and as verdicts add up to.
//   - Fields and Diff name the fields of verdicts and those in which two verdicts differ.
package replay
