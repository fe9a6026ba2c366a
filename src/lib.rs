//! Gives idle GPUs back: joins what JupyterHub knows about a session with what its cards did,
//! warns the owner, and stops the server only when the promised time has passed unanswered.
//!
//! The modules are listed from the bottom floor to the top; a module uses only those above it in
//! this list (`docs/architecture.md`, kept by `tests/module_order.rs`).

pub mod domain;
pub mod policy;
pub mod message;
pub mod hub;
pub mod telemetry;
pub mod cluster;
pub mod notify;
pub mod store;
pub mod trace;
pub mod observer;
pub mod executor;
pub mod cycle;
pub mod settings;
pub mod web;
pub mod agent;
pub mod daemon;
pub mod cli;
