//! What is wrong with the rights in the cluster, before anything goes wrong.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::{ListParams, PostParams};

use super::connection::{self, Connection};
use super::{ClusterError, ClusterSettings};

/// All that is ever asked for.
const VERBS: [&str; 2] = ["list", "watch"];

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// Whether it keeps pods from being known.
    pub is_wrong: bool,
    /// What, and the remedy.
    pub words: String,
}

/// Looks at each namespace whether it can be watched.
pub async fn examine(settings: &ClusterSettings) -> Result<Vec<Advice>, ClusterError> {
    let namespaces = connection::namespaces(settings).await?;
    let connection = Connection::open(settings).await?;
    let mut found = Vec::new();
    for namespace in namespaces {
        found.push(place(&connection, namespace.as_deref()).await);
    }
    Ok(found)
}

async fn place(connection: &Connection, namespace: Option<&str>) -> Advice {
    let place = namespace.unwrap_or("all namespaces");
    // Whoever may not even ask what they may do, finds out by doing it.
    let missing = missing(connection, namespace).await.unwrap_or_default();
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    if !missing.is_empty() {
        let words = format!(
            "the service account may not {} pods in {place}: add the verbs to its {kind} (resource pods)",
            missing.join(" and ")
        );
        return Advice { is_wrong: true, words };
    }
    match connection.pods(namespace).list(&ListParams::default().limit(1)).await {
        Ok(_) => Advice { is_wrong: false, words: format!("pods in {place} may be listed and watched") },
        Err(error) => Advice { is_wrong: true, words: ClusterError::of(error, "list", place).to_string() },
    }
}

/// The verbs that are not granted.
async fn missing(connection: &Connection, namespace: Option<&str>) -> Result<Vec<&'static str>, kube::Error> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(connection.client());
    let mut missing = Vec::new();
    for verb in VERBS {
        let asked = ResourceAttributes {
            namespace: namespace.map(str::to_owned),
            verb: Some(verb.to_owned()),
            resource: Some("pods".to_owned()),
            version: Some("v1".to_owned()),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(asked), ..Default::default() };
        let review = SelfSubjectAccessReview { spec, ..Default::default() };
        let answer = reviews.create(&PostParams::default(), &review).await?;
        if answer.status.is_some_and(|status| !status.allowed) {
            missing.push(verb);
        }
    }
    Ok(missing)
}
