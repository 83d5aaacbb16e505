//! From a question's bytes to the answer's. Pure.

use super::table::{Entry, Mode};
use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{RData, Record, RecordType};
use std::net::IpAddr;
use std::time::Duration;

/// The largest datagram that a client is sent, whatever it allows: as large as servers on the internet send.
const MAX_DATAGRAM: usize = 4096;

/// What to send, and when.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// The message without a length before it.
    pub bytes: Vec<u8>,
    /// How much later.
    pub after: Duration,
}

/// The answer to a query; `None` where there is none. `limit` is the transport's, in bytes; UDP clients may allow more than
/// the usual 512 (EDNS), and what does not fit is left out and the answer marked as truncated. Errors of `look_up` are SERVFAIL.
pub(super) fn answer<E>(
    query: &[u8],
    limit: Option<usize>,
    look_up: impl FnOnce(&str) -> Result<Option<Entry>, E>,
) -> Option<Answer> {
    let query = Message::from_vec(query).ok()?;
    if query.message_type() != MessageType::Query {
        return None;
    }
    let mut response = Message::error_msg(query.id(), query.op_code(), ResponseCode::NoError);
    response.set_recursion_desired(query.recursion_desired()).set_recursion_available(true);
    response.set_authoritative(true).add_queries(query.queries().iter().cloned());
    let after = match (query.op_code(), query.queries()) {
        (OpCode::Query, [question]) => {
            let name = question.name().to_ascii();
            let entry = look_up(name.strip_suffix('.').unwrap_or(&name));
            fill(&mut response, question.name(), question.query_type(), entry)?
        }
        (OpCode::Query, _) => refuse(&mut response, ResponseCode::FormErr),
        _ => refuse(&mut response, ResponseCode::NotImp),
    };
    let mut bytes = response.to_vec().ok()?;
    let limit = limit.map(|limit| usize::from(query.max_payload()).clamp(limit, MAX_DATAGRAM));
    if limit.is_some_and(|limit| bytes.len() > limit) {
        response.take_answers();
        bytes = response.set_truncated(true).to_vec().ok()?;
    }
    Some(Answer { bytes, after })
}

/// Puts a name's entry into the answer; `None` where there is to be none.
fn fill<E>(
    response: &mut Message,
    name: &hickory_proto::rr::Name,
    kind: RecordType,
    entry: Result<Option<Entry>, E>,
) -> Option<Duration> {
    let entry = match entry {
        Ok(Some(entry)) => entry,
        Ok(None) => return Some(refuse(response, ResponseCode::NXDomain)),
        Err(_) => return Some(refuse(response, ResponseCode::ServFail)),
    };
    match entry.mode {
        Mode::Drop => None,
        Mode::NxDomain => Some(refuse(response, ResponseCode::NXDomain)),
        Mode::ServFail => Some(refuse(response, ResponseCode::ServFail)),
        Mode::Answer | Mode::Delay => {
            let data = entry.addresses.iter().filter_map(|address| match (address, kind) {
                (IpAddr::V4(address), RecordType::A) => Some(RData::A(A(*address))),
                (IpAddr::V6(address), RecordType::AAAA) => Some(RData::AAAA(AAAA(*address))),
                _ => None,
            });
            response.add_answers(data.map(|data| Record::from_rdata(name.clone(), entry.ttl, data)));
            Some(if entry.mode == Mode::Delay { entry.delay } else { Duration::ZERO })
        }
    }
}

fn refuse(response: &mut Message, code: ResponseCode) -> Duration {
    response.set_response_code(code);
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::op::{Edns, Query};
    use hickory_proto::rr::Name;

    fn query(name: &str, kind: RecordType) -> Message {
        let mut message = Message::new();
        message.set_id(77).set_recursion_desired(true);
        message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
        message
    }

    fn entry(mode: Mode, addresses: &[&str]) -> Entry {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        Entry { addresses, ttl: 7, mode, delay: Duration::from_millis(30) }
    }

    /// What a query is answered with, decoded.
    fn ask(query: &Message, limit: Option<usize>, entry: Option<Entry>) -> Option<(Message, Duration)> {
        let look_up = |name: &str| {
            assert_eq!(name, "db-1.test");
            Ok::<_, ()>(entry)
        };
        let answer = answer(&query.to_vec().unwrap(), limit, look_up)?;
        Some((Message::from_vec(&answer.bytes).unwrap(), answer.after))
    }

    fn addresses(message: &Message) -> Vec<String> {
        message
            .answers()
            .iter()
            .filter_map(|record| record.data()?.ip_addr())
            .map(|ip| ip.to_string())
            .collect()
    }

    #[test]
    fn each_family_gets_its_addresses() {
        let both = || Some(entry(Mode::Answer, &["10.0.0.1", "::1", "10.0.0.2"]));
        for (kind, expected) in [
            (RecordType::A, &["10.0.0.1", "10.0.0.2"][..]),
            (RecordType::AAAA, &["::1"]),
            (RecordType::TXT, &[]),
        ] {
            let (message, after) = ask(&query("db-1.test.", kind), Some(512), both()).unwrap();
            assert_eq!(addresses(&message), expected);
            assert_eq!(
                (message.id(), message.response_code(), after),
                (77, ResponseCode::NoError, Duration::ZERO)
            );
            assert!(message.answers().iter().all(|record| record.ttl() == 7));
            assert_eq!(message.queries().len(), 1);
        }
    }

    #[test]
    fn modes_are_as_they_say() {
        let asked = |entry| ask(&query("db-1.test", RecordType::A), Some(512), entry);
        let (message, after) = asked(Some(entry(Mode::Delay, &["10.0.0.1"]))).unwrap();
        assert_eq!((addresses(&message).len(), after), (1, Duration::from_millis(30)));
        for (entry, code) in [
            (None, ResponseCode::NXDomain),
            (Some(entry(Mode::NxDomain, &["10.0.0.1"])), ResponseCode::NXDomain),
            (Some(entry(Mode::ServFail, &["10.0.0.1"])), ResponseCode::ServFail),
        ] {
            let (message, after) = asked(entry).unwrap();
            assert_eq!((message.response_code(), addresses(&message).len()), (code, 0));
            assert_eq!(after, Duration::ZERO);
        }
        assert_eq!(asked(Some(entry(Mode::Drop, &["10.0.0.1"]))), None);
    }

    #[test]
    fn what_does_not_fit_is_truncated_unless_the_client_takes_more() {
        let many: Vec<String> = (0..60).map(|last| format!("10.0.0.{last}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let mut question = query("db-1.test", RecordType::A);
        let (message, _) = ask(&question, Some(512), Some(entry(Mode::Answer, &many))).unwrap();
        assert_eq!((message.truncated(), addresses(&message).len()), (true, 0));
        let (message, _) = ask(&question, None, Some(entry(Mode::Answer, &many))).unwrap();
        assert_eq!((message.truncated(), addresses(&message).len()), (false, 60));
        let mut edns = Edns::new();
        edns.set_max_payload(u16::MAX);
        question.set_edns(edns);
        let (message, _) = ask(&question, Some(512), Some(entry(Mode::Answer, &many))).unwrap();
        assert_eq!((message.truncated(), addresses(&message).len()), (false, 60));
        let (message, _) = ask(&question, Some(512), Some(entry(Mode::Answer, &many.repeat(5)))).unwrap();
        assert_eq!((message.truncated(), addresses(&message).len()), (true, 0));
    }

    #[test]
    fn what_is_no_question_is_refused_or_ignored() {
        let code = |message: &Message| {
            let look_up = |_: &str| Err::<Option<Entry>, _>("broken");
            let answer = answer(&message.to_vec().unwrap(), Some(512), look_up)?;
            Some(Message::from_vec(&answer.bytes).unwrap().response_code())
        };
        let mut message = query("db-1.test", RecordType::A);
        assert_eq!(code(&message), Some(ResponseCode::ServFail));
        message.set_op_code(OpCode::Update);
        assert_eq!(code(&message), Some(ResponseCode::NotImp));
        message.set_message_type(MessageType::Response);
        assert_eq!(code(&message), None);
        assert_eq!(code(&Message::new()), Some(ResponseCode::FormErr));
        for junk in [&b""[..], b"\0", b"GET / HTTP/1.0\r\n\r\n"] {
            assert_eq!(answer(junk, Some(512), |_| Ok::<_, ()>(None)), None);
        }
    }
}
