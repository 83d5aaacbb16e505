//! `aws.locality_awareness` in `hostgroup_settings` of mysql_hostgroup_attributes.

use serde_json::{Map, Value};
use std::ops::RangeInclusive;
use std::time::Duration;

const MULTIPLIERS: RangeInclusive<f64> = 1.0..=10.0;
const REFRESH_SECONDS: RangeInclusive<u64> = 30..=86_400;
const LONGEST_STALE_SECONDS: u64 = 604_800;
const DEFAULT_REFRESH_SECONDS: u64 = 300;
const DEFAULT_STALE_SECONDS: u64 = 1_800;

/// How much more a hostgroup's near servers are chosen than its far ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// Factor for servers in the proxy's Region, 1.0 to 10.0.
    pub same_region: f64,
    /// Factor for servers in its Availability Zone, `same_region` to 10.0.
    pub same_zone: f64,
    /// When metadata is asked for anew.
    pub refresh: Duration,
    /// For how long metadata holds whose refresh fails.
    pub stale_ttl: Duration,
}

/// Why there is no policy. Names the field, never its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}; servers are chosen by their weights alone")]
pub struct Rejected {
    /// Path of the field.
    pub field: &'static str,
    /// What is asked of it.
    pub problem: &'static str,
}

fn rejected(field: &'static str, problem: &'static str) -> Rejected {
    Rejected { field, problem }
}

impl Policy {
    /// What the settings say, if anything. They are JSON, or empty.
    pub fn parse(settings: &Value) -> Result<Option<Self>, Rejected> {
        let Some(aws) = settings.get("aws") else { return Ok(None) };
        let aws = aws.as_object().ok_or(rejected("aws", "must be an object"))?;
        let Some(object) = aws.get("locality_awareness") else { return Ok(None) };
        let object = object.as_object().ok_or(rejected("aws.locality_awareness", "must be an object"))?;
        let same_region = multiplier(object, "same_region_multiplier")?;
        let same_zone = multiplier(object, "same_az_multiplier")?;
        if same_zone < same_region {
            return Err(rejected("same_az_multiplier", "must not be below same_region_multiplier"));
        }
        let refresh = seconds(object, "refresh_interval_seconds", DEFAULT_REFRESH_SECONDS)?;
        if !REFRESH_SECONDS.contains(&refresh) {
            return Err(rejected("refresh_interval_seconds", "must be from 30 to 86400"));
        }
        let stale = seconds(object, "stale_ttl_seconds", DEFAULT_STALE_SECONDS)?;
        if !(refresh..=LONGEST_STALE_SECONDS).contains(&stale) {
            let problem = "must be from refresh_interval_seconds to 604800, and is 1800 if it is not given";
            return Err(rejected("stale_ttl_seconds", problem));
        }
        let (refresh, stale_ttl) = (Duration::from_secs(refresh), Duration::from_secs(stale));
        Ok(Some(Self { same_region, same_zone, refresh, stale_ttl }))
    }
}

fn multiplier(object: &Map<String, Value>, field: &'static str) -> Result<f64, Rejected> {
    let value = object.get(field).ok_or(rejected(field, "is missing"))?;
    let number = value.as_f64().ok_or(rejected(field, "must be a number"))?;
    match MULTIPLIERS.contains(&number) {
        true => Ok(number),
        false => Err(rejected(field, "must be from 1.0 to 10.0")),
    }
}

fn seconds(object: &Map<String, Value>, field: &'static str, default: u64) -> Result<u64, Rejected> {
    match object.get(field) {
        None => Ok(default),
        Some(value) => value.as_u64().ok_or(rejected(field, "must be a whole number of seconds")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(inner: &str) -> Result<Option<Policy>, Rejected> {
        let settings = format!(r#"{{"aws":{{"locality_awareness":{inner}}}}}"#);
        Policy::parse(&serde_json::from_str(&settings).unwrap())
    }

    #[test]
    fn both_multipliers_suffice() {
        let policy = parse(r#"{"same_region_multiplier":2.0,"same_az_multiplier":4}"#).unwrap().unwrap();
        assert_eq!((policy.same_region, policy.same_zone), (2.0, 4.0));
        assert_eq!((policy.refresh.as_secs(), policy.stale_ttl.as_secs()), (300, 1_800));
    }

    #[test]
    fn the_limits_themselves_are_allowed() {
        for good in [
            r#"{"same_region_multiplier":1.0,"same_az_multiplier":1.0,"refresh_interval_seconds":30,"stale_ttl_seconds":30}"#,
            r#"{"same_region_multiplier":10,"same_az_multiplier":10,"refresh_interval_seconds":86400,"stale_ttl_seconds":604800}"#,
            r#"{"same_region_multiplier":1,"same_az_multiplier":10,"another":true}"#,
        ] {
            assert!(parse(good).unwrap().is_some(), "{good}");
        }
    }

    #[test]
    fn rejections_name_the_field_and_never_the_value() {
        let rest = r#""same_region_multiplier":2,"same_az_multiplier":4"#;
        let with = |field: &str| format!("{{{rest},{field}}}");
        let secret = "\"s3cret\"";
        let cases = [
            ("7".into(), "aws.locality_awareness"),
            ("null".into(), "aws.locality_awareness"),
            ("{}".into(), "same_region_multiplier"),
            (r#"{"same_region_multiplier":2}"#.into(), "same_az_multiplier"),
            (r#"{"same_az_multiplier":2}"#.into(), "same_region_multiplier"),
            (
                format!(r#"{{"same_region_multiplier":{secret},"same_az_multiplier":4}}"#),
                "same_region_multiplier",
            ),
            (r#"{"same_region_multiplier":"2.0","same_az_multiplier":4}"#.into(), "same_region_multiplier"),
            (r#"{"same_region_multiplier":2,"same_az_multiplier":"4"}"#.into(), "same_az_multiplier"),
            (r#"{"same_region_multiplier":0.999,"same_az_multiplier":4}"#.into(), "same_region_multiplier"),
            (r#"{"same_region_multiplier":2,"same_az_multiplier":10.001}"#.into(), "same_az_multiplier"),
            (r#"{"same_region_multiplier":2,"same_az_multiplier":1.9}"#.into(), "same_az_multiplier"),
            (r#"{"same_region_multiplier":-2,"same_az_multiplier":2}"#.into(), "same_region_multiplier"),
            (with(r#""refresh_interval_seconds":29"#), "refresh_interval_seconds"),
            (with(r#""refresh_interval_seconds":86401"#), "refresh_interval_seconds"),
            (with(r#""refresh_interval_seconds":300.5"#), "refresh_interval_seconds"),
            (with(r#""refresh_interval_seconds":-300"#), "refresh_interval_seconds"),
            (with(r#""refresh_interval_seconds":null"#), "refresh_interval_seconds"),
            (with(&format!(r#""stale_ttl_seconds":{secret}"#)), "stale_ttl_seconds"),
            (with(r#""stale_ttl_seconds":604801"#), "stale_ttl_seconds"),
            (with(r#""stale_ttl_seconds":299"#), "stale_ttl_seconds"),
            (with(r#""refresh_interval_seconds":3600"#), "stale_ttl_seconds"),
        ];
        for (inner, field) in cases {
            let rejected = parse(&inner).expect_err(&inner);
            assert_eq!(rejected.field, field, "{inner}");
            assert!(!rejected.to_string().contains("s3cret"));
        }
    }

    #[test]
    fn other_settings_are_not_a_policy() {
        for settings in ["{}", r#"{"aws":{}}"#, r#"{"handle_warnings":1}"#, "7"] {
            assert_eq!(Policy::parse(&serde_json::from_str(settings).unwrap()), Ok(None), "{settings}");
        }
        let rejected = Policy::parse(&serde_json::json!({"aws": 3})).unwrap_err();
        assert_eq!(rejected.field, "aws");
    }
}
