//! Every word a person gets: reasons, subjects, bodies.

pub mod reasons;
