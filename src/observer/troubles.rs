//! What is wrong with the list of servers, in words for the admin.

use crate::hub::{HubError, Listing};

pub(super) fn troubles(listing: Result<&Listing, &HubError>) -> Vec<String> {
    let mut troubles = Vec::new();
    match listing {
        Err(error) => troubles.push(format!("the servers cannot be listed: {error}")),
        Ok(listing) => {
            troubles.extend(
                listing.incomplete.iter().map(|part| format!("part of the list did not come: {part}")),
            );
            let skipped = listing.skipped.len();
            if skipped > 0 {
                troubles.push(format!("{skipped} entries of the Hub's list could not be read; see the log"));
            }
            if listing.hidden.state > 0 {
                troubles
                    .push("the Hub hides where servers run: grant the scope admin:server_state".to_owned());
            }
        }
    }
    troubles
}
