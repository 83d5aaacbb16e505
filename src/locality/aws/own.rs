//! Where this proxy runs.

use super::environment::Environment;
use super::failure::{Failure, of_answer};
use super::http::{Call, Client};
use super::metadata::Metadata;
use super::places::{account, account_of};
use crate::locality::provider::Location;
use serde_json::Value;
use std::time::Instant;

const TASK: &str = "the task metadata endpoint";

/// Asks the container's task, where there is one, else the instance.
pub fn locate(
    client: &Client,
    environment: &Environment,
    metadata: &mut Metadata,
    until: Instant,
) -> Result<Location, Failure> {
    let task = environment.get("ECS_CONTAINER_METADATA_URI_V4").map(|url| of_task(client, url, until));
    if let Some(Ok(location)) = task {
        return Ok(location);
    }
    let instance = of_instance(client, environment, metadata, until);
    match (instance, task) {
        // Fargate has no instance: what the task says counts.
        (Err(_), Some(Err(failure))) => Err(failure),
        (instance, _) => instance,
    }
}

fn of_task(client: &Client, url: &str, until: Instant) -> Result<Location, Failure> {
    let url = format!("{}/task", url.trim_end_matches('/'));
    let reply =
        client.ask_near(&Call { who: TASK, method: "GET", url: &url, headers: &[], body: "", until })?;
    match reply.status {
        200 => read_task(&reply.body)
            .ok_or_else(|| Failure::invalid(TASK, "it tells no Availability Zone and TaskARN")),
        status => Err(of_answer(TASK, status, None)),
    }
}

/// `arn:aws:ecs:REGION:ACCOUNT:task/...`
fn read_task(answer: &str) -> Option<Location> {
    let task: Value = serde_json::from_str(answer).ok()?;
    let text = |name: &str| task.get(name).and_then(Value::as_str).unwrap_or_default();
    let (zone, arn) = (text("AvailabilityZone"), text("TaskARN"));
    let region = arn.split(':').nth(3).filter(|region| !region.is_empty())?;
    (!zone.is_empty()).then(|| Location {
        region: region.to_owned(),
        zone: zone.to_owned(),
        zone_id: String::new(),
        account: account_of(arn),
    })
}

fn of_instance(
    client: &Client,
    environment: &Environment,
    metadata: &mut Metadata,
    until: Instant,
) -> Result<Location, Failure> {
    let mut get = |path: &str| metadata.get(client, environment, path, until);
    let mut placement = |name: &str| -> Result<String, Failure> {
        let text = get(&format!("/latest/meta-data/placement/{name}"))?.unwrap_or_default();
        let text = text.trim();
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        match text.len() <= 64 && text.bytes().all(is_word) {
            true => Ok(text.to_owned()),
            false => {
                Err(Failure::invalid("the instance metadata service", format!("placement/{name} is no name")))
            }
        }
    };
    let (region, zone) = (placement("region")?, placement("availability-zone")?);
    if region.is_empty() || zone.is_empty() {
        return Err(Failure::invalid(
            "the instance metadata service",
            "it tells no Region or no Availability Zone",
        ));
    }
    let zone_id = placement("availability-zone-id")?;
    let document = get("/latest/dynamic/instance-identity/document")?.unwrap_or_default();
    Ok(Location { region, zone, zone_id, account: read_account(&document) })
}

/// `accountId` of an instance identity document; empty where it tells none.
fn read_account(document: &str) -> String {
    let document: Value = serde_json::from_str(document).unwrap_or_default();
    account(document.get("accountId").and_then(Value::as_str).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_tells_its_place() {
        let task = r#"{"Cluster":"c","TaskARN":"arn:aws:ecs:us-west-2:111122223333:task/default/158d","AvailabilityZone":"us-west-2d"}"#;
        let expected = Location {
            region: "us-west-2".into(),
            zone: "us-west-2d".into(),
            zone_id: String::new(),
            account: "111122223333".into(),
        };
        assert_eq!(read_task(task), Some(expected));
        for other in [
            "",
            "[]",
            "{}",
            r#"{"AvailabilityZone":"us-west-2d"}"#,
            r#"{"TaskARN":"arn:aws:ecs:us-west-2:1:task/x"}"#,
        ] {
            assert_eq!(read_task(other), None, "{other}");
        }
    }

    #[test]
    fn a_document_tells_the_account() {
        assert_eq!(read_account(r#"{"accountId":"111122223333","region":"x"}"#), "111122223333");
        for other in ["", "{}", r#"{"accountId":"x"}"#, r#"{"accountId":111122223333}"#] {
            assert_eq!(read_account(other), "", "{other}");
        }
    }
}
