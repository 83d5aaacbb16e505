//! Requests to AWS's query APIs: forms, signed by Signature Version 4.

use super::failure::{Failure, of_answer};
use super::http::{Call, Client};
use super::xml;
use crate::locality::names;
use crate::locality::provider::Category;
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use std::time::{Instant, SystemTime};
use ureq::http::Uri;

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded; charset=utf-8");

/// One of AWS's query APIs in one Region.
#[derive(Debug)]
pub struct Api<'a> {
    /// `rds` or `sts`
    pub service: &'a str,
    /// Of its documentation.
    pub version: &'a str,
    /// Where it is asked.
    pub region: &'a str,
    /// Where it is, if not where AWS has it.
    pub endpoint: Option<&'a str>,
}

impl Api<'_> {
    /// Its name in words.
    pub fn who(&self) -> String {
        format!("the {} API of {}", self.service.to_ascii_uppercase(), self.region)
    }
    fn url(&self) -> String {
        match self.endpoint {
            Some(endpoint) => format!("{endpoint}/"),
            None => format!("https://{}.{}.{}/", self.service, self.region, names::suffix_of(self.region)),
        }
    }
    /// Asks, signed where credentials are given, and returns the answer to a success.
    pub fn ask(
        &self,
        client: &Client,
        credentials: Option<&Credentials>,
        parameters: &[(&str, &str)],
        until: Instant,
    ) -> Result<String, Failure> {
        let (who, url) = (self.who(), self.url());
        // To sign a request to another URL is a panic.
        if !is_whole(&url) {
            return Err(Failure::configuration(
                format!("{who} would be asked at what is no URL of http or https"),
                "see AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_RDS, AWS_ENDPOINT_URL_STS and AWS_REGION",
            ));
        }
        let body = form(parameters.iter().chain(&[("Version", self.version)]));
        let signature = match credentials {
            Some(credentials) => {
                signed(credentials, self, &url, &body, SystemTime::now()).ok_or_else(|| {
                    Failure::new(Category::ProviderError, format!("the request to {who} cannot be signed"))
                })?
            }
            None => Vec::new(),
        };
        let headers: Vec<(&str, &str)> =
            [FORM].into_iter().chain(signature.iter().map(|(name, value)| (*name, value.as_str()))).collect();
        let call = Call { who: &who, method: "POST", url: &url, headers: &headers, body: &body, until };
        let reply = client.ask(&call)?;
        match reply.status {
            200 => Ok(reply.body),
            status => Err(of_answer(&who, status, xml::error_code(&reply.body).as_deref())),
        }
    }
}

/// Whether a URL tells how and whom to ask.
pub(super) fn is_whole(url: &str) -> bool {
    url.parse::<Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
    })
}

/// `name=value&...`, where all but unreserved characters are escaped.
fn form<'a>(parameters: impl Iterator<Item = &'a (&'a str, &'a str)>) -> String {
    let pairs: Vec<String> =
        parameters.map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
    pairs.join("&")
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte))
            }
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}

/// The headers that sign a POST of a form.
fn signed(
    credentials: &Credentials,
    api: &Api<'_>,
    url: &str,
    body: &str,
    now: SystemTime,
) -> Option<Vec<(&'static str, String)>> {
    let identity = credentials.clone().into();
    let parameters = SigningParams::builder()
        .identity(&identity)
        .region(api.region)
        .name(api.service)
        .time(now)
        .settings(SigningSettings::default())
        .build()
        .ok()?;
    let request =
        SignableRequest::new("POST", url, [FORM].into_iter(), SignableBody::Bytes(body.as_bytes())).ok()?;
    let (instructions, _) = sign(request, &parameters.into()).ok()?.into_parts();
    let (headers, _) = instructions.into_parts();
    Some(headers.into_iter().map(|header| (header.name(), header.value().to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn apis_are_in_the_domains_of_their_partitions() {
        for (region, expected) in [
            ("eu-north-1", "https://rds.eu-north-1.amazonaws.com/"),
            ("us-gov-west-1", "https://rds.us-gov-west-1.amazonaws.com/"),
            ("cn-north-1", "https://rds.cn-north-1.amazonaws.com.cn/"),
            ("us-iso-east-1", "https://rds.us-iso-east-1.c2s.ic.gov/"),
            ("us-isob-east-1", "https://rds.us-isob-east-1.sc2s.sgov.gov/"),
            ("eusc-de-east-1", "https://rds.eusc-de-east-1.amazonaws.eu/"),
        ] {
            let api = Api { service: "rds", version: "2014-10-31", region, endpoint: None };
            assert_eq!(api.url(), expected);
        }
        let api =
            Api { service: "sts", version: "2011-06-15", region: "x", endpoint: Some("http://127.0.0.1:1") };
        assert_eq!((api.url().as_str(), api.who().as_str()), ("http://127.0.0.1:1/", "the STS API of x"));
    }

    #[test]
    fn forms_are_escaped() {
        assert_eq!(form([("a b", "1&2=ä~-_.")].iter()), "a%20b=1%262%3D%C3%A4~-_.");
    }

    /// What is sent is what the fakes of the other tests check; here, that the time and the token are signed.
    #[test]
    fn signatures_cover_time_and_token() {
        let api = Api { service: "rds", version: "2014-10-31", region: "eu-north-1", endpoint: None };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let headers = |token: Option<&str>, now| {
            let credentials = Credentials::new("AKID", "secret", token.map(str::to_owned), None, "test");
            signed(&credentials, &api, &api.url(), "Action=X", now).unwrap()
        };
        let value = |headers: &[(&str, String)], name| {
            headers.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone())
        };
        let plain = headers(None, now);
        let authorization = value(&plain, "authorization").unwrap();
        assert_eq!(value(&plain, "x-amz-date").as_deref(), Some("20231114T221320Z"));
        assert!(
            authorization.contains("Credential=AKID/20231114/eu-north-1/rds/aws4_request"),
            "{authorization}"
        );
        assert_eq!(value(&plain, "x-amz-security-token"), None);
        let token = headers(Some("token"), now);
        assert_eq!(value(&token, "x-amz-security-token").as_deref(), Some("token"));
        assert!(value(&token, "authorization").unwrap().contains("x-amz-security-token"));
        let later = headers(None, now + Duration::from_secs(1));
        assert_ne!(value(&later, "authorization"), value(&plain, "authorization"));
    }
}
