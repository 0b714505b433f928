//! Lists of which a worker keeps very many, most of them short.

/// Appends to a list of which there are many: it grows by a half instead of doubling, since what is reserved and not used is most of what
/// a short list costs.
pub(crate) fn push_tightly<T>(list: &mut Vec<T>, item: T) {
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
