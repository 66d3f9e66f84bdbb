/* Sets of bytes, compared with a map of the bytes. */
#include "daemon/lib/base/intervals.h"
#include "tests/support/cmocka.h"

#define BYTES 300u
#define RUNS 200

static uint32_t any(uint32_t below)
{
    static uint64_t state = 88172645463325252u;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state % below);
}

/* Random intervals, and which bytes they are. */
static void make(struct intervals *s, bool map[BYTES])
{
    uint32_t count = any(20);

    memset(map, 0, BYTES);
    *s = (struct intervals){0};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t begin = any(BYTES), end = begin + any(BYTES + 1 - begin);
        if (any(3) > 0)
            end = begin + (end - begin) / 16;
        assert_int_equal(intervals_add(s, begin, end), 0);
        memset(&map[begin], true, end - begin);
    }
}

static void check(const struct intervals *s, const bool map[BYTES])
{
    uint64_t bytes = 0, place = 0;

    for (uint32_t i = 0; i < BYTES; i++)
        bytes += map[i];
    assert_int_equal(s->bytes, bytes);
    for (size_t i = 0; i < s->count; i++) {
        assert_true(s->item[i].begin < s->item[i].end && s->item[i].end <= BYTES);
        assert_true(i == 0 || s->item[i - 1].end < s->item[i].begin);
        for (; place < s->item[i].begin; place++)
            assert_false(map[place]);
        for (; place < s->item[i].end; place++)
            assert_true(map[place]);
    }
    for (; place < BYTES; place++)
        assert_false(map[place]);
}

TEST(added_bytes_are_in_the_set)
{
    for (int run = 0; run < RUNS; run++) {
        bool map[BYTES];
        struct intervals s;
        make(&s, map);
        check(&s, map);
        intervals_free(&s);
        assert_int_equal(s.bytes, 0);
    }
}

TEST(an_interval_inside_another_changes_nothing)
{
    struct intervals s = {0};

    assert_int_equal(intervals_add(&s, 10, 30), 0);
    assert_int_equal(intervals_add(&s, 15, 20), 0);
    assert_int_equal(intervals_add(&s, 30, 30), 0);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.item[0].begin, 10);
    assert_int_equal(s.item[0].end, 30);
    assert_int_equal(s.bytes, 20);
    intervals_free(&s);
}

TEST(gaps_are_found)
{
    for (int run = 0; run < RUNS; run++) {
        bool map[BYTES];
        struct intervals s;
        make(&s, map);
        for (uint32_t from = 0; from < BYTES; from++) {
            uint64_t until, begin = from, end;
            while (begin < BYTES && map[begin])
                begin++;
            for (end = begin; end < BYTES && !map[end];)
                end++;
            assert_int_equal(intervals_gap(&s, from, BYTES, &until), begin);
            if (begin < BYTES)
                assert_int_equal(until, end);
            assert_true(intervals_contain(&s, from, begin));
            assert_true(begin == BYTES || !intervals_contain(&s, from, begin + 1));
        }
        intervals_free(&s);
    }
}

TEST(missing_bytes_are_those_that_are_not_in_the_set)
{
    for (int run = 0; run < RUNS; run++) {
        bool map[BYTES];
        struct intervals s;
        uint64_t at = 0, begin, n;
        make(&s, map);
        for (uint32_t place = 0; place < BYTES; place++) {
            if (map[place])
                continue;
            n = intervals_missing(&s, BYTES, at++, &begin);
            assert_int_equal(begin, place);
            for (uint32_t i = 0; i < n; i++)
                assert_false(map[place + i]);
            assert_true(place + n == BYTES || map[place + n]);
        }
        assert_int_equal(intervals_missing(&s, BYTES, at, &begin), 0);
        assert_int_equal(intervals_missing(&s, BYTES, UINT64_MAX, &begin), 0);
        intervals_free(&s);
    }
}

TEST(a_walk_comes_through_all_bytes)
{
    for (int run = 0; run < RUNS; run++) {
        bool map[BYTES];
        struct intervals s;
        make(&s, map);
        for (uint64_t first = 0; first < s.bytes; first++) {
            struct interval_walk walk = intervals_walk(&s, first);
            uint64_t place = 0, left = s.bytes - first;
            for (uint64_t before = first; before > 0 || !map[place]; place++)
                before -= map[place];
            while (left > 0) {
                const uint64_t most = 1 + any(20);
                const struct interval found = intervals_next(&s, &walk, most);
                while (!map[place])
                    place++;
                assert_int_equal(found.begin, place);
                assert_true(found.end > found.begin && found.end - found.begin <= most);
                for (; place < found.end; place++, left--)
                    assert_true(map[place]);
            }
            assert_int_equal(intervals_next(&s, &walk, 1).end, 0);
        }
        intervals_free(&s);
    }
}

/* The widest gaps stay. */
TEST(near_intervals_are_joined)
{
    for (int run = 0; run < RUNS; run++) {
        bool map[BYTES];
        struct intervals s;
        const size_t most = 1 + any(6);
        make(&s, map);
        const size_t count = s.count;
        uint64_t closed = 0, open = UINT64_MAX;
        assert_int_equal(intervals_join(&s, most), 0);
        assert_int_equal(s.count, count < most ? count : most);
        for (size_t i = 0; i < s.count; i++) {
            uint64_t gap = 0;
            if (i > 0 && s.item[i].begin - s.item[i - 1].end < open)
                open = s.item[i].begin - s.item[i - 1].end;
            for (uint64_t place = s.item[i].begin; place < s.item[i].end; place++) {
                gap = map[place] ? 0 : gap + 1;
                closed = gap > closed ? gap : closed;
                map[place] = true;
            }
        }
        assert_true(closed <= open);
        check(&s, map);
        intervals_free(&s);
    }
}

TEST(the_last_intervals_are_cut)
{
    for (int run = 0; run < RUNS; run++) {
        bool map[BYTES];
        struct intervals s;
        make(&s, map);
        const size_t count = s.count, most = any(6);
        intervals_cut(&s, most);
        assert_int_equal(s.count, count < most ? count : most);
        const uint64_t end = s.count > 0 ? s.item[s.count - 1].end : 0;
        if (count > most)
            memset(&map[end], 0, BYTES - end);
        check(&s, map);
        intervals_free(&s);
    }
}
