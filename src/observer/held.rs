//! Who held each card when that could last be read: a card that fell off the bus lists no processes any
//! more, and whoever held it then still does.

use std::collections::BTreeMap;

use crate::domain::{GpuId, Holder};
use crate::telemetry::Machine;

/// The holders of all cards.
#[derive(Debug, Default)]
pub(super) struct Held(BTreeMap<(String, GpuId), Vec<Holder>>);

impl Held {
    /// Remembers what a machine lists, and lists what it no longer can.
    pub fn fill_in(&mut self, machine: &mut Machine) {
        for reading in machine.devices.iter_mut().flatten() {
            let card = (machine.name.clone(), reading.sample.id.clone());
            match (&reading.holders, self.0.get(&card)) {
                (Ok(holders), _) => {
                    self.0.insert(card, holders.clone());
                }
                (Err(_), Some(holders)) => reading.holders = Ok(holders.clone()),
                (Err(_), None) => {}
            }
        }
    }
}
