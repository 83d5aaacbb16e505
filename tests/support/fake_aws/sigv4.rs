//! Whether a request is signed by Signature Version 4, worked out from the published algorithm:
//! docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html.

use super::http::Request;
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::sha::sha256;
use openssl::sign::Signer;

/// What a request says of its signature.
#[derive(Debug)]
pub struct Claim<'a> {
    pub key: &'a str,
    pub date: &'a str,
    pub region: &'a str,
    pub service: &'a str,
    signed_headers: &'a str,
    signature: &'a str,
}

/// Reads the header Authorization.
pub fn claim(request: &Request) -> Option<Claim<'_>> {
    let fields = request.header("authorization")?.strip_prefix("AWS4-HMAC-SHA256 ")?;
    let field =
        |name: &str| fields.split(',').find_map(|field| field.trim().strip_prefix(name)?.strip_prefix('='));
    let scope: Vec<&str> = field("Credential")?.split('/').collect();
    let [key, date, region, service, "aws4_request"] = scope[..] else { return None };
    let (signed_headers, signature) = (field("SignedHeaders")?, field("Signature")?);
    Some(Claim { key, date, region, service, signed_headers, signature })
}

/// Whether the secret has signed it, and all of it that must be.
pub fn verify(request: &Request, claim: &Claim<'_>, secret: &str) -> bool {
    let names: Vec<&str> = claim.signed_headers.split(';').collect();
    let has = |name: &str| names.contains(&name);
    let token = request.header("x-amz-security-token").is_none() || has("x-amz-security-token");
    let Some(time) = request.header("x-amz-date").filter(|time| time.starts_with(claim.date)) else {
        return false;
    };
    if !has("host") || !has("x-amz-date") || !has("content-type") || !token || !names.is_sorted() {
        return false;
    }
    let mut canonical = format!("{}\n{}\n\n", request.method, request.path);
    for name in &names {
        let value = request.header(name).unwrap_or_default();
        canonical.push_str(&format!("{name}:{}\n", value.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    canonical.push_str(&format!("\n{}\n{}", claim.signed_headers, hex(&sha256(request.body.as_bytes()))));
    let scope = format!("{}/{}/{}/aws4_request", claim.date, claim.region, claim.service);
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&sha256(canonical.as_bytes())));
    let mut key = format!("AWS4{secret}").into_bytes();
    for part in scope.split('/') {
        key = hmac(&key, part);
    }
    hex(&hmac(&key, &text)) == claim.signature
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let key = PKey::hmac(key).unwrap();
    let mut signer = Signer::new(MessageDigest::sha256(), &key).unwrap();
    signer.sign_oneshot_to_vec(text.as_bytes()).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `post-x-www-form-urlencoded` of the test suite that AWS has published.
    #[test]
    fn the_published_example_is_signed() {
        let mut request = Request {
            method: "POST".into(),
            path: "/".into(),
            headers: [
                ("content-type", "application/x-www-form-urlencoded"),
                ("host", "example.amazonaws.com"),
                ("x-amz-date", "20150830T123600Z"),
                (
                    "authorization",
                    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
                     SignedHeaders=content-type;host;x-amz-date, \
                     Signature=ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
                ),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
            body: "Param1=value1".into(),
        };
        let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        let claimed = claim(&request).unwrap();
        assert_eq!((claimed.key, claimed.region, claimed.service), ("AKIDEXAMPLE", "us-east-1", "service"));
        assert!(verify(&request, &claimed, secret));
        assert!(!verify(&request, &claimed, "another"));
        request.body.push('x');
        assert!(!verify(&request, &claim(&request).unwrap(), secret));
    }
}
