//! What listings of the RDS API say of endpoints. No IO.

use super::failure::Failure;
use super::xml::{self, child, list, text};
use crate::dns::normalise;
use crate::locality::names::{EndpointKind, EndpointName};
use crate::locality::provider::{Answer, Category, Location};
use roxmltree::Node;
use std::collections::{BTreeSet, HashMap};

/// One DB instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Its identifier, in lower case.
    pub id: String,
    /// Its endpoint, as names are compared; empty while it is being created.
    pub endpoint: String,
    /// The Availability Zone, by name; empty while it is being created.
    pub zone: String,
    /// Whose it is.
    pub account: String,
}

/// One cluster, of Aurora or of Multi-AZ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Leads to the writer.
    pub writer: String,
    /// Leads to readers.
    pub reader: String,
    /// Custom endpoints.
    pub custom: Vec<String>,
    /// Identifiers of its instances, in lower case, and whether each is the writer.
    pub members: Vec<(String, bool)>,
    /// Whose it is.
    pub account: String,
}

/// A part of a listing, and where the next part begins.
#[derive(Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// What is listed.
    pub items: Vec<T>,
    /// For `Marker`.
    pub next: Option<String>,
}

/// Reads an answer to DescribeDBInstances.
pub fn instances(who: &str, answer: &str) -> Result<Page<Instance>, Failure> {
    page(who, answer, "DescribeDBInstances", "DBInstances", |node| Instance {
        id: text(node, "DBInstanceIdentifier").to_ascii_lowercase(),
        endpoint: child(node, "Endpoint").map(|at| normalise(text(at, "Address"))).unwrap_or_default(),
        zone: text(node, "AvailabilityZone").to_owned(),
        account: account_of(text(node, "DBInstanceArn")),
    })
}

/// Reads an answer to DescribeDBClusters.
pub fn clusters(who: &str, answer: &str) -> Result<Page<Cluster>, Failure> {
    page(who, answer, "DescribeDBClusters", "DBClusters", |node| Cluster {
        writer: normalise(text(node, "Endpoint")),
        reader: normalise(text(node, "ReaderEndpoint")),
        custom: list(node, "CustomEndpoints").filter_map(|at| at.text()).map(normalise).collect(),
        members: list(node, "DBClusterMembers")
            .map(|member| {
                let id = text(member, "DBInstanceIdentifier").to_ascii_lowercase();
                (id, text(member, "IsClusterWriter") == "true")
            })
            .collect(),
        account: account_of(text(node, "DBClusterArn")),
    })
}

fn page<T>(
    who: &str,
    answer: &str,
    action: &str,
    items: &str,
    read: impl Fn(Node<'_, '_>) -> T,
) -> Result<Page<T>, Failure> {
    let document = xml::parse(who, answer)?;
    let root = document.root_element();
    let absent = || Failure::invalid(who, format!("there is no {action}Result"));
    let result = child(root, &format!("{action}Result")).ok_or_else(absent)?;
    if child(result, items).is_none() {
        return Err(Failure::invalid(who, format!("there is no {items}")));
    }
    let marker = text(result, "Marker");
    let next = (!marker.is_empty()).then(|| marker.to_owned());
    Ok(Page { items: list(result, items).map(read).collect(), next })
}

/// The account in `arn:PARTITION:SERVICE:REGION:ACCOUNT:...`
pub fn account_of(arn: &str) -> String {
    account(arn.split(':').nth(4).unwrap_or_default())
}

/// An account's id, which is twelve digits; empty for anything else.
pub fn account(id: &str) -> String {
    let is_account = id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_digit());
    if is_account { id.to_owned() } else { String::new() }
}

/// What is known of one Region.
#[derive(Debug, Default)]
pub struct Places {
    instances: Vec<Instance>,
    clusters: Vec<Cluster>,
}

/// The cluster that an endpoint leads to, if it is listed.
fn cluster_of<'a>(clusters: &'a [Cluster], name: &EndpointName, host: &str) -> Option<&'a Cluster> {
    clusters.iter().find(|cluster| match name.kind {
        EndpointKind::Instance => false,
        EndpointKind::Cluster => cluster.writer == host,
        EndpointKind::ClusterReader => cluster.reader == host,
        EndpointKind::ClusterCustom => cluster.custom.iter().any(|custom| custom == host),
    })
}

/// The instances that can answer at an endpoint of a cluster. What is excluded from a custom endpoint the listing does not tell.
fn members(cluster: &Cluster, kind: EndpointKind) -> impl Iterator<Item = &str> {
    let readers = cluster.members.iter().any(|(_, is_writer)| !is_writer);
    let answers = move |is_writer: bool| match kind {
        EndpointKind::Cluster => is_writer,
        // A cluster without readers is read from its writer.
        EndpointKind::ClusterReader => !is_writer || !readers,
        EndpointKind::Instance | EndpointKind::ClusterCustom => true,
    };
    cluster.members.iter().filter(move |(_, is_writer)| answers(*is_writer)).map(|(id, _)| id.as_str())
}

/// Identifiers of the instances whose zones tell where endpoints are.
pub fn wanted<'a>(
    names: impl IntoIterator<Item = (&'a str, &'a EndpointName)>,
    clusters: &'a [Cluster],
) -> BTreeSet<&'a str> {
    let mut wanted = BTreeSet::new();
    for (host, name) in names {
        match cluster_of(clusters, name, host) {
            Some(cluster) => wanted.extend(members(cluster, name.kind)),
            None if name.kind == EndpointKind::Instance => drop(wanted.insert(name.id.as_str())),
            None => {}
        }
    }
    wanted
}

impl Places {
    /// Of listings.
    pub fn new(instances: Vec<Instance>, clusters: Vec<Cluster>) -> Self {
        Self { instances, clusters }
    }
    /// Where an endpoint is. `host` is in lower case, without the final dot.
    pub fn locate(&self, host: &str, name: &EndpointName) -> Answer {
        let place = |zone: &str, account: &str| Location {
            region: name.region.clone(),
            zone: zone.to_owned(),
            zone_id: String::new(),
            account: account.to_owned(),
        };
        if name.kind == EndpointKind::Instance {
            let instance = self.instances.iter().find(|instance| instance.endpoint == host);
            return instance.map(|it| place(&it.zone, &it.account)).ok_or(Category::NotFound);
        }
        let cluster = cluster_of(&self.clusters, name, host).ok_or(Category::NotFound)?;
        Ok(place(self.common_zone(cluster, name.kind).unwrap_or_default(), &cluster.account))
    }
    /// The zone of all instances that can answer, if it is one.
    fn common_zone(&self, cluster: &Cluster, kind: EndpointKind) -> Option<&str> {
        let zones: HashMap<&str, &str> =
            self.instances.iter().map(|instance| (instance.id.as_str(), instance.zone.as_str())).collect();
        let mut members = members(cluster, kind).map(|id| zones.get(id).copied().unwrap_or_default());
        let first = members.next().filter(|zone| !zone.is_empty())?;
        members.all(|zone| zone == first).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: &str = "the RDS API";

    fn instance(id: &str, zone: &str) -> Instance {
        let endpoint = format!("{id}.cabc.eu-north-1.rds.amazonaws.com");
        Instance { id: id.into(), endpoint, zone: zone.into(), account: "111122223333".into() }
    }

    fn shop(members: &[(&str, bool)]) -> Cluster {
        Cluster {
            writer: "shop.cluster-cabc.eu-north-1.rds.amazonaws.com".into(),
            reader: "shop.cluster-ro-cabc.eu-north-1.rds.amazonaws.com".into(),
            custom: vec!["any.cluster-custom-cabc.eu-north-1.rds.amazonaws.com".into()],
            members: members.iter().map(|(id, writer)| ((*id).to_owned(), *writer)).collect(),
            account: "111122223333".into(),
        }
    }

    fn locate(places: &Places, host: &str) -> Result<String, Category> {
        let location = places.locate(host, &EndpointName::parse(host).unwrap())?;
        assert_eq!((&*location.region, &*location.account), ("eu-north-1", "111122223333"));
        Ok(location.zone)
    }

    const DB: &str = "db.cabc.eu-north-1.rds.amazonaws.com";
    const WRITER: &str = "shop.cluster-cabc.eu-north-1.rds.amazonaws.com";
    const READER: &str = "shop.cluster-ro-cabc.eu-north-1.rds.amazonaws.com";
    const CUSTOM: &str = "any.cluster-custom-cabc.eu-north-1.rds.amazonaws.com";

    #[test]
    fn an_instance_is_in_its_zone_and_a_cluster_where_its_instances_are() {
        let instances = || {
            vec![
                instance("db", "a"),
                instance("s1", "a"),
                instance("s2", "b"),
                instance("s3", "b"),
                instance("new", ""),
            ]
        };
        let places = |members: &[(&str, bool)]| Places::new(instances(), vec![shop(members)]);
        let two_zones = places(&[("s1", true), ("s2", false), ("s3", false)]);
        let zone = |zone: &str| Ok(zone.to_owned());
        assert_eq!(locate(&two_zones, DB), zone("a"));
        assert_eq!(locate(&two_zones, "new.cabc.eu-north-1.rds.amazonaws.com"), zone(""));
        assert_eq!(locate(&two_zones, WRITER), zone("a"));
        assert_eq!(locate(&two_zones, READER), zone("b"), "the readers alone");
        assert_eq!(locate(&two_zones, CUSTOM), zone(""), "any of them");
        let spread = places(&[("s2", true), ("s1", false), ("s3", false)]);
        assert_eq!(locate(&spread, READER), zone(""));
        assert_eq!(locate(&spread, WRITER), zone("b"));
        let alone = places(&[("s2", true)]);
        assert_eq!(locate(&alone, READER), zone("b"), "the writer serves reads");
        assert_eq!(locate(&alone, CUSTOM), zone("b"));
        for members in [
            &[("s2", false), ("unlisted", false)][..],
            &[("s2", false), ("new", false)],
            &[("new", false)],
            &[],
        ] {
            assert_eq!(locate(&places(members), READER), zone(""), "{members:?}");
            assert_eq!(locate(&places(members), WRITER), zone(""), "no writer: {members:?}");
        }
    }

    #[test]
    fn what_is_not_listed_is_not_found() {
        let places = Places::new(vec![instance("db", "a")], vec![shop(&[("db", true)])]);
        for host in [
            "other.cabc.eu-north-1.rds.amazonaws.com",
            // The same identifier, in another account.
            "db.cxyz.eu-north-1.rds.amazonaws.com",
            "other.cluster-cabc.eu-north-1.rds.amazonaws.com",
            "shop.cluster-custom-cabc.eu-north-1.rds.amazonaws.com",
        ] {
            assert_eq!(locate(&places, host), Err(Category::NotFound), "{host}");
        }
    }

    #[test]
    fn only_instances_that_matter_are_wanted() {
        let clusters = [shop(&[("s1", true), ("s2", false)])];
        let names: Vec<_> = [DB, WRITER, READER, CUSTOM, "x.cluster-cabc.eu-north-1.rds.amazonaws.com"]
            .map(|host| (host, EndpointName::parse(host).unwrap()))
            .into();
        let of = |chosen: &[usize]| {
            let names = chosen.iter().map(|index| (names[*index].0, &names[*index].1));
            wanted(names, &clusters).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(of(&[0]), ["db"]);
        assert_eq!(of(&[1]), ["s1"]);
        assert_eq!(of(&[2]), ["s2"]);
        assert_eq!(of(&[0, 3]), ["db", "s1", "s2"]);
        assert_eq!(of(&[4]), [""; 0]);
    }

    #[test]
    fn listings_are_read() {
        let answer = r#"<DescribeDBInstancesResponse xmlns="http://rds.amazonaws.com/doc/2014-10-31/"><DescribeDBInstancesResult>
            <DBInstances><DBInstance><DBInstanceIdentifier>DB</DBInstanceIdentifier><Engine>mysql</Engine>
              <Endpoint><Address>DB.cabc.eu-north-1.rds.amazonaws.com.</Address><Port>3306</Port></Endpoint>
              <DBSubnetGroup><Subnets><Subnet><SubnetAvailabilityZone><Name>eu-north-1z</Name></SubnetAvailabilityZone></Subnet></Subnets></DBSubnetGroup>
              <AvailabilityZone>a</AvailabilityZone><SecondaryAvailabilityZone>c</SecondaryAvailabilityZone>
              <DBInstanceArn>arn:aws:rds:eu-north-1:111122223333:db:db</DBInstanceArn></DBInstance>
              <DBInstance><DBInstanceIdentifier>new</DBInstanceIdentifier></DBInstance></DBInstances>
            <Marker>next-please</Marker></DescribeDBInstancesResult></DescribeDBInstancesResponse>"#;
        let page = instances(WHO, answer).unwrap();
        let new = Instance { id: "new".into(), endpoint: "".into(), zone: "".into(), account: "".into() };
        assert_eq!(page, Page { items: vec![instance("db", "a"), new], next: Some("next-please".into()) });
        let answer = r#"<DescribeDBClustersResponse xmlns="http://rds.amazonaws.com/doc/2014-10-31/"><DescribeDBClustersResult>
            <DBClusters><DBCluster><Endpoint>shop.cluster-cabc.eu-north-1.rds.amazonaws.com</Endpoint>
              <ReaderEndpoint>shop.cluster-ro-cabc.eu-north-1.rds.amazonaws.com</ReaderEndpoint>
              <CustomEndpoints><member>Any.cluster-custom-cabc.eu-north-1.rds.amazonaws.com</member></CustomEndpoints>
              <DBClusterMembers><DBClusterMember><DBInstanceIdentifier>S1</DBInstanceIdentifier><IsClusterWriter>true</IsClusterWriter></DBClusterMember>
              <DBClusterMember><DBInstanceIdentifier>s2</DBInstanceIdentifier><IsClusterWriter>false</IsClusterWriter></DBClusterMember></DBClusterMembers>
              <DBClusterArn>arn:aws:rds:eu-north-1:111122223333:cluster:shop</DBClusterArn></DBCluster></DBClusters>
            </DescribeDBClustersResult></DescribeDBClustersResponse>"#;
        let page = clusters(WHO, answer).unwrap();
        assert_eq!(page, Page { items: vec![shop(&[("s1", true), ("s2", false)])], next: None });
    }

    #[test]
    fn other_answers_make_no_sense() {
        for answer in [
            "<DescribeDBInstancesResponse/>",
            "<DescribeDBInstancesResponse><DescribeDBInstancesResult/></DescribeDBInstancesResponse>",
            "<DescribeDBClustersResponse><DescribeDBClustersResult><DBClusters/></DescribeDBClustersResult></DescribeDBClustersResponse>",
            "<html><body/></html>",
        ] {
            assert_eq!(instances(WHO, answer).unwrap_err().category, Category::InvalidAnswer, "{answer}");
        }
    }

    #[test]
    fn accounts_are_in_arns() {
        assert_eq!(account_of("arn:aws-cn:ecs:cn-north-1:111122223333:task/x/y"), "111122223333");
        for other in ["", "arn:aws:iam::aws:policy/x", "arn:aws:rds:eu-north-1:1111:db:x"] {
            assert_eq!(account_of(other), "", "{other}");
        }
    }
}
