//! `[kubernetes]`.

use globset::{Glob, GlobSet, GlobSetBuilder};

use super::{SettingsError, raw};
use crate::cluster::{ClusterSettings, Namespaces};

/// The section, checked.
#[derive(Clone, Debug)]
pub struct Kubernetes {
    /// The cluster.
    pub cluster: ClusterSettings,
    /// Whether servers are asked at their pods' addresses, past the proxy.
    pub direct: bool,
}

pub(super) fn settings(raw: &raw::Kubernetes) -> Result<Kubernetes, SettingsError> {
    Ok(Kubernetes {
        cluster: ClusterSettings {
            kubeconfig: raw.kubeconfig.clone(),
            context: raw.context.clone(),
            namespaces: namespaces(raw.namespaces.as_deref())?,
            cards: cards(raw.resources.as_deref())?,
            renew: ClusterSettings::RENEW,
            patience: ClusterSettings::PATIENCE,
        },
        direct: raw.direct.unwrap_or(true),
    })
}

fn bad(key: &str, what: impl std::fmt::Display) -> SettingsError {
    SettingsError::key(&format!("kubernetes.{key}"), what)
}

fn namespaces(raw: Option<&[String]>) -> Result<Namespaces, SettingsError> {
    let is_name = |name: &&String| {
        let label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !name.is_empty() && name.len() <= 63 && name.chars().all(label)
    };
    match raw {
        None => Ok(Namespaces::Own),
        Some([]) => {
            Err(bad("namespaces", "names none: leave it out for the own one, or write [\"*\"] for all"))
        }
        Some([all]) if all == "*" => Ok(Namespaces::All),
        Some(named) => match named.iter().find(|name| !is_name(name)) {
            Some(odd) if odd == "*" => {
                Err(bad("namespaces", "\"*\" means all of them: give nothing beside it"))
            }
            Some(odd) => Err(bad("namespaces", format!("\"{odd}\" is no name of a namespace"))),
            None => {
                let mut named = named.to_vec();
                named.sort();
                named.dedup();
                Ok(Namespaces::Named(named))
            }
        },
    }
}

fn cards(raw: Option<&[String]>) -> Result<GlobSet, SettingsError> {
    let own = raw.unwrap_or_default();
    if let Some(odd) = own.iter().find(|name| !name.contains('/')) {
        let what = format!("\"{odd}\" is no resource of a device plugin: write it like \"nvidia.com/gpu\"");
        return Err(bad("resources", what));
    }
    let mut all = GlobSetBuilder::new();
    for name in ClusterSettings::CARDS.into_iter().chain(own.iter().map(String::as_str)) {
        all.add(Glob::new(name).map_err(|error| bad("resources", error))?);
    }
    all.build().map_err(|error| bad("resources", error))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;

    fn read(text: &str) -> Result<Kubernetes, String> {
        let raw = toml::from_str(text).map_err(|error| error.to_string())?;
        settings(&raw).map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_section_means_the_own_namespace_and_the_usual_cards() {
        let read = read("").unwrap();
        assert_eq!(read.cluster.namespaces, Namespaces::Own);
        assert!(read.direct && read.cluster.kubeconfig.is_none());
        for card in ["nvidia.com/gpu", "nvidia.com/mig-3g.40gb", "amd.com/gpu"] {
            assert!(read.cluster.cards.is_match(card), "{card}");
        }
        assert!(!read.cluster.cards.is_match("nvidia.com/a100"));
    }

    #[test]
    fn own_resources_stand_beside_the_usual_ones() {
        let cards = read("resources = [\"nvidia.com/a100*\"]").unwrap().cluster.cards;
        assert!(cards.is_match("nvidia.com/a100-80gb") && cards.is_match("nvidia.com/gpu"));
    }

    #[test]
    fn namespaces_are_named_once_or_all_are_meant() {
        let named = |text| read(text).map(|read| read.cluster.namespaces);
        let two = Namespaces::Named(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(named("namespaces = [\"b\", \"a\", \"b\"]"), Ok(two));
        assert_eq!(named("namespaces = [\"*\"]"), Ok(Namespaces::All));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_key() {
        for (text, word) in [
            ("namespaces = []", "kubernetes.namespaces"),
            ("namespaces = [\"a\", \"*\"]", "nothing beside it"),
            ("namespaces = [\"Hub\"]", "\"Hub\" is no name"),
            ("resources = [\"gpu\"]", "kubernetes.resources"),
            ("resources = [\"nvidia.com/[\"]", "kubernetes.resources"),
            ("namespace = [\"a\"]", "unknown field"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
