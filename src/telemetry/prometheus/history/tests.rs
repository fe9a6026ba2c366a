use super::*;

#[test]
fn pieces_are_as_long_as_about_as_many_samples_take() {
    let rules = Rules { sm: 0.01, dram: 0.01, reach: 30_000, max_gap: 180_000, weak: false };
    let length = |cards| Piece::new(cards, 15_000, 0, &rules).length / 60_000;
    assert_eq!((length(100), length(8)), (100, 1250));
    assert_eq!(length(1), 24 * 60, "at most a day");
    let mut piece = Piece::new(100, 15_000, 0, &rules);
    let times = std::iter::from_fn(|| piece.shorten(&rules).then_some(())).count();
    assert!(times > 5 && times < 20, "{times}");
}

#[test]
fn a_cards_name_can_mean_nothing_in_a_query() {
    assert_eq!(escaped("GPU-5d1f"), "GPU-5d1f");
    assert_eq!(escaped("x\"} or y{a=\"|.*"), "x...or.y.a.....");
}
