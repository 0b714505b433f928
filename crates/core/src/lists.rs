//! Growing lists of which a worker holds very many, most of them short.

/// Appends to a list of which there are many. The list grows by a half instead of doubling: unused reserve is most of what a short list
/// costs.
pub fn push_tightly<T>(list: &mut Vec<T>, item: T) {
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 2).max(2));
    }
    list.push(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_grows_by_a_half() {
        let mut list = Vec::new();
        let capacities: Vec<_> = (0..10)
            .map(|item| {
                push_tightly(&mut list, item);
                list.capacity()
            })
            .collect();
        assert_eq!(capacities, [2, 2, 4, 4, 6, 6, 9, 9, 9, 13]);
    }
}
