//! Answers of AWS's query APIs.

use super::failure::Failure;
use roxmltree::{Document, Node, ParsingOptions};

/// Elements and texts of an answer that is read; one page of a listing has some ten thousand.
const MOST_NODES: u32 = 2_000_000;

/// Equals signs from one tag to the next, and so attributes of an element. The parser compares each with all before it; AWS's
/// answers have one in all, and a few in texts.
const MOST_ATTRIBUTES: usize = 256;

/// Reads an answer. `who` is for the failure.
pub fn parse<'a>(who: &str, text: &'a str) -> Result<Document<'a>, Failure> {
    // The parser's words may quote the answer.
    document(text).ok_or_else(|| Failure::invalid(who, "it is no complete XML"))
}

fn document(text: &str) -> Option<Document<'_>> {
    // No "<" stands within a tag.
    let attributes = |piece: &str| piece.bytes().filter(|byte| *byte == b'=').count();
    if text.split('<').any(|piece| attributes(piece) > MOST_ATTRIBUTES) {
        return None;
    }
    let options = ParsingOptions { nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).ok()
}

/// The child of this name. Namespaces are those of API versions and say nothing more.
pub fn child<'a, 'input>(node: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    node.children().find(|child| child.tag_name().name() == name)
}

/// The text of the child of this name, without white space around it; empty where there is none.
pub fn text<'a>(node: Node<'a, '_>, name: &str) -> &'a str {
    child(node, name).and_then(|child| child.text()).unwrap_or_default().trim()
}

/// The elements of a list.
pub fn list<'a, 'input>(node: Node<'a, 'input>, name: &str) -> impl Iterator<Item = Node<'a, 'input>> {
    child(node, name).into_iter().flat_map(|list| list.children()).filter(Node::is_element)
}

/// The code of an error's answer, if it is one: `ErrorResponse/Error/Code`, a word.
pub fn error_code(text: &str) -> Option<String> {
    let document = document(text)?;
    let code = document.descendants().find(|node| node.tag_name().name() == "Code")?.text()?.trim();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_';
    (!code.is_empty() && code.len() <= 64 && code.bytes().all(is_word)).then(|| code.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locality::provider::Category;

    #[test]
    fn codes_are_words() {
        let error = |code: &str| {
            format!(
                "<ErrorResponse xmlns=\"x\"><Error><Type>Sender</Type><Code>{code}</Code></Error></ErrorResponse>"
            )
        };
        assert_eq!(error_code(&error("AccessDenied")).as_deref(), Some("AccessDenied"));
        assert_eq!(error_code(&error(" AuthFailure ")).as_deref(), Some("AuthFailure"));
        for other in ["", "two words", &"x".repeat(65)] {
            assert_eq!(error_code(&error(other)), None, "{other}");
        }
        assert_eq!(error_code("<html>"), None);
    }

    #[test]
    fn parts_are_found_by_name_in_any_namespace() {
        let text_ = "<a xmlns='http://rds/'><b> x </b><list><m>1</m> <m>2</m></list><c/></a>";
        let document = parse("rds", text_).unwrap();
        let root = document.root_element();
        assert_eq!((text(root, "b"), text(root, "c"), text(root, "d")), ("x", "", ""));
        assert_eq!(list(root, "list").filter_map(|node| node.text()).collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(list(root, "none").count(), 0);
    }

    #[test]
    fn no_element_has_so_many_attributes_that_reading_takes_long() {
        let with = |count: usize| {
            let attributes: String = (0..count).map(|number| format!(" a{number}='>'")).collect();
            format!("<b><a{attributes}/></b>")
        };
        assert!(parse("rds", &with(256)).is_ok());
        for many in [257, 500_000] {
            assert_eq!(parse("rds", &with(many)).unwrap_err().category, Category::InvalidAnswer);
            assert_eq!(error_code(&with(many)), None);
        }
    }

    #[test]
    fn what_is_no_xml_is_an_invalid_answer() {
        for text in ["", "<a>", "{}", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"] {
            assert_eq!(parse("rds", text).unwrap_err().category, Category::InvalidAnswer, "{text}");
        }
    }
}
