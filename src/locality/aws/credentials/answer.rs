//! Credentials in answers: the JSON of metadata services and of programs, and the XML of STS.

use crate::locality::aws::failure::Failure;
use crate::locality::aws::xml::{self, text};
use aws_credential_types::Credentials;
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// Reads `{"AccessKeyId", "SecretAccessKey", "Token" or "SessionToken", "Expiration"}`.
pub fn read_json(who: &str, answer: &str) -> Result<Credentials, Failure> {
    let fields: Value = serde_json::from_str(answer).map_err(|_| Failure::invalid(who, "it is no JSON"))?;
    let field = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let token = ["Token", "SessionToken"].map(field).into_iter().find(|token| !token.is_empty());
    build(who, field("AccessKeyId"), field("SecretAccessKey"), token.unwrap_or_default(), field("Expiration"))
}

/// Reads `ACTIONResponse/ACTIONResult/Credentials`.
pub fn read_xml(who: &str, answer: &str) -> Result<Credentials, Failure> {
    let document = xml::parse(who, answer)?;
    let credentials = document.descendants().find(|node| node.tag_name().name() == "Credentials");
    let at = credentials.ok_or_else(|| Failure::invalid(who, "there are no credentials"))?;
    build(
        who,
        text(at, "AccessKeyId"),
        text(at, "SecretAccessKey"),
        text(at, "SessionToken"),
        text(at, "Expiration"),
    )
}

fn build(who: &str, key: &str, secret: &str, token: &str, expiration: &str) -> Result<Credentials, Failure> {
    if key.is_empty() || secret.is_empty() {
        return Err(Failure::invalid(who, "there are no credentials"));
    }
    let expiry = match expiration {
        "" => None,
        text => Some(time(text).ok_or_else(|| Failure::invalid(who, "Expiration is no time"))?),
    };
    let token = (!token.is_empty()).then(|| token.to_owned());
    Ok(Credentials::new(key, secret, token, expiry, super::STATIC))
}

/// Reads a time of ISO 8601, to the second.
fn time(text: &str) -> Option<SystemTime> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(time.as_second().try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locality::provider::Category;

    #[test]
    fn answers_of_both_kinds_are_read() {
        let json = r#"{"Code":"Success","AccessKeyId":"AKID","SecretAccessKey":"hush","Token":"t","Expiration":"2023-11-14T22:13:20Z"}"#;
        let xml = "<AssumeRoleResponse xmlns='https://sts.amazonaws.com/doc/2011-06-15/'><AssumeRoleResult><Credentials>\
                   <AccessKeyId>AKID</AccessKeyId><SecretAccessKey>hush</SecretAccessKey><SessionToken>t</SessionToken>\
                   <Expiration>2023-11-14T22:13:20.000Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>";
        for found in [read_json("x", json).unwrap(), read_xml("x", xml).unwrap()] {
            assert_eq!((found.access_key_id(), found.secret_access_key()), ("AKID", "hush"));
            assert_eq!(found.session_token(), Some("t"));
            assert_eq!(found.expiry(), Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)));
        }
        let process = r#"{"Version":1,"AccessKeyId":"AKID","SecretAccessKey":"hush","SessionToken":"s"}"#;
        let found = read_json("x", process).unwrap();
        assert_eq!((found.session_token(), found.expiry()), (Some("s"), None));
    }

    #[test]
    fn others_are_invalid_and_not_repeated() {
        for answer in [
            "",
            "hush",
            "{}",
            r#"{"Code":"Failed","Message":"hush"}"#,
            r#"{"AccessKeyId":"AKID","SecretAccessKey":""}"#,
            r#"{"AccessKeyId":"AKID","SecretAccessKey":"hush","Expiration":"hush"}"#,
        ] {
            let failure = read_json("x", answer).unwrap_err();
            assert_eq!(failure.category, Category::InvalidAnswer, "{answer}");
            assert!(!failure.to_string().contains("hush"), "{failure}");
        }
        assert_eq!(read_xml("x", "<a>hush</a>").unwrap_err().category, Category::InvalidAnswer);
    }
}
