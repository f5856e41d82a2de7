/// How many of `nodes` servers decide: more than half of them, so that two decisions always have a server in common.
pub(crate) fn majority(nodes: usize) -> usize {
    nodes / 2 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_majorities_have_a_server_in_common() {
        for nodes in 1..=32 {
            assert!(2 * majority(nodes) > nodes, "{nodes}");
            assert!(2 * (majority(nodes) - 1) <= nodes, "{nodes}: fewer would do");
        }
    }
}
