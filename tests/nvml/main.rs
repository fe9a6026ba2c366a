//! The NVML source against a pretended driver, through the real wrapper and the real C interface.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should stop at once")]

mod activity;
mod agent;
mod command;
mod coming_and_going;
mod counters;
mod driver;
mod holders;
mod impossible;
mod instances;
mod power;
