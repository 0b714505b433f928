//! How the embedded broker of `tollgate dev` says whose work is done on it already.

use tollgate_json::digest::Digest;

/// How many digits of the group's digest stand in the id of a cluster.
const DIGITS: usize = 7;

/// Returns how the id of a cluster begins whose `tollgate dev` does the work of a group. That process has all partitions without being a member
/// of the group, so that a worker that joined the group would decide on every event a second time.
#[must_use]
pub fn cluster_of_dev(group_id: &str) -> String {
    let digits = Digest::of(group_id.as_bytes()).to_string();
    format!("dev-{}", digits.chars().take(DIGITS).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_has_an_id_of_the_length_of_the_mock_clusters() {
        let (one, other) = (cluster_of_dev("tollgate"), cluster_of_dev("another"));
        assert_eq!((one.len(), other.len()), ("mockCluster".len(), "mockCluster".len()));
        assert!(one != other && one == cluster_of_dev("tollgate"));
    }
}
