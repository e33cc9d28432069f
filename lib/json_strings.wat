;; Finds the strings of a JSON text in UTF-8, 64 bytes at a time, and decodes their escapes of one letter (`\n`).
;;
;; The structure of the text is not looked at: whoever walks it meets the strings in the order in which they are told.
;; In a mask a bit stands for a byte of a block, the lowest for the first one. How a mask is put together of four vectors is
;; written out each time: a function that does it costs 10 % for Latin texts, and as much again as all the rest for Chinese.
(module
  (memory (export "memory") 39)
  ;; Where the text goes: at most 1,048,576 bytes, behind which 64 are written here.
  (global $input (export "input") i32 (i32.const 430080))
  ;; What strings say that are copied, each with its closing quote: what is broken off at the end of one must not become a
  ;; character with the begin of the next. In UTF-8, and never longer than the text.
  (global $output (export "output") i32 (i32.const 1478720))
  (global $output_bytes (export "outputBytes") (mut i32) (i32.const 0))
  ;; Whether there is a `\/` in one of them, which needs no backslash.
  (global $slashes (export "slashes") (mut i32) (i32.const 0))
  ;; What is told of each string, in three words: the offset of its closing quote; how many more bytes than code units
  ;; of UTF-16 are before that; and one of
  ;;   0 and more: it was copied, and ends there in the output, in code units
  ;;   -1: it stands as it is; -2: it has escapes that are not decoded here
  ;;   -3 - n: it stands as it is, and is the name at place n; -1027 - n: it is put there
  (global $tape (export "tape") i32 (i32.const 36864))
  (global $tape_end i32 (i32.const 430080))
  ;; Names that were seen: 1024 places of 32 bytes, the end of which is zeros. Two places side by side are for the same
  ;; names. More places mean fewer names that share them.
  (global $names (export "names") i32 (i32.const 4096))

  ;; At 0: what the letter behind a backslash stands for; 0 where it is none of these.
  (data (i32.const 0x22) "\22")
  (data (i32.const 0x2f) "/")
  (data (i32.const 0x5c) "\5c")
  (data (i32.const 0x62) "\08")
  (data (i32.const 0x66) "\0c")
  (data (i32.const 0x6e) "\0a")
  (data (i32.const 0x72) "\0d")
  (data (i32.const 0x74) "\09")
  ;; At 256: 32 bytes of ones, then as many of zeros.
  (data (i32.const 256) "\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff")

  ;; How many strings there are; -1 where they are too many, one has no end, or there is something that may not be in one.
  ;; Those with escapes are copied; with `all` those as well that stand as they are, but for names that may be kept.
  (func (export "find") (param $length i32) (param $all i32) (result i32)
    (local $at i32) (local $end i32) (local $tape i32) (local $out i32)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128) (local $t v128)
    ;; Masks of a block: quotes that are not escaped, backslashes that begin an escape, both of them; what is within
    ;; strings; bytes that continue a character, and that begin one of two code units.
    (local $quotes i64) (local $escapes i64) (local $events i64) (local $inside i64) (local $more i64) (local $pairs i64)
    (local $m i64) (local $before i64)
    ;; Of the blocks before: all ones within a string; 1 where the first byte is escaped.
    (local $carry i64) (local $escaped i64)
    ;; How many more bytes than code units there are before the block, the event, and the open string.
    (local $extra i32) (local $extra_here i32) (local $extra_open i32)
    ;; The same of the output.
    (local $extra_out i32)
    ;; The string that is open, or 0; what of it is not in the output; where it begins there.
    (local $open i32) (local $rest i32) (local $out_open i32)
    ;; Whether it has an escape that is not decoded here.
    (local $other i32)
    ;; Whether any has an escape of that slash.
    (local $slashes i32)
    (local $pos i32) (local $k i32)

    (local.set $at (global.get $input))
    (local.set $end (i32.add (local.get $at) (local.get $length)))
    (local.set $tape (global.get $tape))
    (local.set $out (global.get $output))
    (v128.store offset=0 align=1 (local.get $end) (v128.const i64x2 0 0))
    (v128.store offset=16 align=1 (local.get $end) (v128.const i64x2 0 0))
    (v128.store offset=32 align=1 (local.get $end) (v128.const i64x2 0 0))
    (v128.store offset=48 align=1 (local.get $end) (v128.const i64x2 0 0))

    (block $done (loop $blocks
      (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
      (local.set $a (v128.load offset=0 (local.get $at)))
      (local.set $b (v128.load offset=16 (local.get $at)))
      (local.set $c (v128.load offset=32 (local.get $at)))
      (local.set $d (v128.load offset=48 (local.get $at)))

      (local.set $t (i8x16.splat (i32.const 0x22)))
      (local.set $quotes (i64.or
        (i64.extend_i32_u (i32.or (i8x16.bitmask (i8x16.eq (local.get $a) (local.get $t)))
          (i32.shl (i8x16.bitmask (i8x16.eq (local.get $b) (local.get $t))) (i32.const 16))))
        (i64.shl (i64.extend_i32_u (i32.or (i8x16.bitmask (i8x16.eq (local.get $c) (local.get $t)))
          (i32.shl (i8x16.bitmask (i8x16.eq (local.get $d) (local.get $t))) (i32.const 16)))) (i64.const 32))))

      (local.set $t (i8x16.splat (i32.const 0x5c)))
      (local.set $m (i64.or
        (i64.extend_i32_u (i32.or (i8x16.bitmask (i8x16.eq (local.get $a) (local.get $t)))
          (i32.shl (i8x16.bitmask (i8x16.eq (local.get $b) (local.get $t))) (i32.const 16))))
        (i64.shl (i64.extend_i32_u (i32.or (i8x16.bitmask (i8x16.eq (local.get $c) (local.get $t)))
          (i32.shl (i8x16.bitmask (i8x16.eq (local.get $d) (local.get $t))) (i32.const 16)))) (i64.const 32))))
      (local.set $escapes (i64.const 0))
      (if (i64.ne (i64.or (local.get $m) (local.get $escaped)) (i64.const 0)) (then
        ;; In a row of backslashes every other one begins an escape. A row that is taken from the odd bits behind it
        ;; borrows through all of itself, which tells rows that begin at odd places from those that begin at even ones.
        (local.set $before (i64.and (local.get $m) (i64.xor (local.get $escaped) (i64.const -1))))
        (local.set $before (i64.xor (i64.const 0xaaaaaaaaaaaaaaaa) (i64.sub
          (i64.or (i64.shl (local.get $before) (i64.const 1)) (i64.const 0xaaaaaaaaaaaaaaaa)) (local.get $before))))
        (local.set $escapes (i64.and (local.get $before) (local.get $m)))
        (local.set $quotes (i64.and (local.get $quotes) (i64.xor (i64.const -1)
          (i64.xor (local.get $before) (i64.or (local.get $m) (local.get $escaped))))))
        (local.set $escaped (i64.shr_u (local.get $escapes) (i64.const 63)))))

      (local.set $inside (local.get $carry))
      (if (i64.ne (local.get $quotes) (i64.const 0)) (then
        ;; Whether the quotes up to a byte are odd in number.
        (local.set $m (i64.xor (local.get $quotes) (i64.shl (local.get $quotes) (i64.const 1))))
        (local.set $m (i64.xor (local.get $m) (i64.shl (local.get $m) (i64.const 2))))
        (local.set $m (i64.xor (local.get $m) (i64.shl (local.get $m) (i64.const 4))))
        (local.set $m (i64.xor (local.get $m) (i64.shl (local.get $m) (i64.const 8))))
        (local.set $m (i64.xor (local.get $m) (i64.shl (local.get $m) (i64.const 16))))
        (local.set $m (i64.xor (local.get $m) (i64.shl (local.get $m) (i64.const 32))))
        (local.set $inside (i64.xor (local.get $m) (local.get $carry)))
        (local.set $carry (i64.shr_s (local.get $inside) (i64.const 63)))))

      (if (i64.ne (i64.const 0) (i64.and (local.get $escapes) (i64.xor (local.get $inside) (i64.const -1))))
        (then (return (i32.const -1))))

      ;; Control characters may be between strings.
      (local.set $t (i8x16.splat (i32.const 0x1f)))
      (if (v128.any_true (i8x16.le_u (i8x16.min_u (i8x16.min_u (local.get $a) (local.get $b))
          (i8x16.min_u (local.get $c) (local.get $d))) (local.get $t))) (then
        (if (i64.ne (i64.const 0) (i64.and (local.get $inside) (i64.or
          (i64.extend_i32_u (i32.or (i8x16.bitmask (i8x16.le_u (local.get $a) (local.get $t)))
            (i32.shl (i8x16.bitmask (i8x16.le_u (local.get $b) (local.get $t))) (i32.const 16))))
          (i64.shl (i64.extend_i32_u (i32.or (i8x16.bitmask (i8x16.le_u (local.get $c) (local.get $t)))
            (i32.shl (i8x16.bitmask (i8x16.le_u (local.get $d) (local.get $t))) (i32.const 16)))) (i64.const 32)))))
          (then (return (i32.const -1))))))

      (local.set $more (i64.const 0))
      (local.set $pairs (i64.const 0))
      (if (i8x16.bitmask (v128.or (v128.or (local.get $a) (local.get $b)) (v128.or (local.get $c) (local.get $d)))) (then
        (local.set $t (i8x16.splat (i32.const 0xc0)))
        (local.set $more (i64.or
          (i64.extend_i32_u (i32.or (i8x16.bitmask (i8x16.lt_s (local.get $a) (local.get $t)))
            (i32.shl (i8x16.bitmask (i8x16.lt_s (local.get $b) (local.get $t))) (i32.const 16))))
          (i64.shl (i64.extend_i32_u (i32.or (i8x16.bitmask (i8x16.lt_s (local.get $c) (local.get $t)))
            (i32.shl (i8x16.bitmask (i8x16.lt_s (local.get $d) (local.get $t))) (i32.const 16)))) (i64.const 32))))
        (local.set $t (i8x16.splat (i32.const 0xf0)))
        (if (v128.any_true (i8x16.ge_u (i8x16.max_u (i8x16.max_u (local.get $a) (local.get $b))
            (i8x16.max_u (local.get $c) (local.get $d))) (local.get $t))) (then
          (local.set $pairs (i64.or
            (i64.extend_i32_u (i32.or (i8x16.bitmask (i8x16.ge_u (local.get $a) (local.get $t)))
              (i32.shl (i8x16.bitmask (i8x16.ge_u (local.get $b) (local.get $t))) (i32.const 16))))
            (i64.shl (i64.extend_i32_u (i32.or (i8x16.bitmask (i8x16.ge_u (local.get $c) (local.get $t)))
              (i32.shl (i8x16.bitmask (i8x16.ge_u (local.get $d) (local.get $t))) (i32.const 16)))) (i64.const 32))))))))

      (local.set $events (i64.or (local.get $quotes) (local.get $escapes)))
      (block $next (loop $each
        (br_if $next (i64.eqz (local.get $events)))
        (local.set $m (i64.ctz (local.get $events)))
        (local.set $pos (i32.add (local.get $at) (i32.wrap_i64 (local.get $m))))
        (local.set $events (i64.and (local.get $events) (i64.sub (local.get $events) (i64.const 1))))

        (if (i32.wrap_i64 (i64.and (i64.shr_u (local.get $escapes) (local.get $m)) (i64.const 1))) (then
          (local.set $k (local.get $out))
          (local.set $out (i32.add (local.get $out) (i32.sub (local.get $pos) (local.get $rest))))
          (loop $copy
            (v128.store align=1 (local.get $k) (v128.load align=1 (local.get $rest)))
            (v128.store offset=16 align=1 (local.get $k) (v128.load offset=16 align=1 (local.get $rest)))
            (local.set $rest (i32.add (local.get $rest) (i32.const 32)))
            (local.set $k (i32.add (local.get $k) (i32.const 32)))
            (br_if $copy (i32.lt_u (local.get $k) (local.get $out))))
          (local.set $k (i32.load8_u (i32.load8_u offset=1 (local.get $pos))))
          (local.set $other (i32.or (local.get $other) (i32.eqz (local.get $k))))
          (local.set $slashes (i32.or (local.get $slashes) (i32.eq (local.get $k) (i32.const 0x2f))))
          (i32.store8 (local.get $out) (local.get $k))
          (local.set $out (i32.add (local.get $out) (i32.const 1)))
          (local.set $rest (i32.add (local.get $pos) (i32.const 2)))
          (br $each)))

        (local.set $extra_here (local.get $extra))
        (if (i64.ne (i64.or (local.get $more) (local.get $pairs)) (i64.const 0)) (then
          (local.set $before (i64.sub (i64.shl (i64.const 1) (local.get $m)) (i64.const 1)))
          (local.set $extra_here (i32.add (local.get $extra) (i32.wrap_i64 (i64.sub
            (i64.popcnt (i64.and (local.get $more) (local.get $before)))
            (i64.popcnt (i64.and (local.get $pairs) (local.get $before)))))))))

        (if (i32.eqz (local.get $open)) (then
          (local.set $open (i32.add (local.get $pos) (i32.const 1)))
          (local.set $rest (local.get $open))
          (local.set $extra_open (local.get $extra_here))
          (local.set $out_open (local.get $out))
          (local.set $other (i32.const 0))
          (br $each)))

        ;; A string ends.
        (if (i32.eq (local.get $tape) (global.get $tape_end)) (then (return (i32.const -1))))
        (i32.store (local.get $tape) (i32.sub (local.get $pos) (global.get $input)))
        (i32.store offset=4 (local.get $tape) (local.get $extra_here))
        (block $told
          (block $copied (if (i32.eq (local.get $rest) (local.get $open)) (then
            (i32.store offset=8 (local.get $tape) (i32.const -1))
            (local.set $k (i32.sub (local.get $pos) (local.get $open)))
            (if (i32.or (i32.gt_u (local.get $k) (i32.const 32))
                (i32.ne (i32.load8_u offset=1 (local.get $pos)) (i32.const 0x3a))) (then
              (br_if $copied (local.get $all))
              (br $told)))
            ;; A name: its bytes, and zeros.
            (local.set $k (i32.sub (i32.const 288) (local.get $k)))
            (local.set $a (v128.and (v128.load align=1 (local.get $open)) (v128.load align=1 (local.get $k))))
            (local.set $b (v128.and
              (v128.load offset=16 align=1 (local.get $open)) (v128.load offset=16 align=1 (local.get $k))))
            (local.set $m (i64.add
              (i64.mul (i64x2.extract_lane 0 (local.get $a)) (i64.const 0x9e3779b97f4a7c15))
              (i64.mul (i64.const 0xbf58476d1ce4e5b9) (i64.xor (i64x2.extract_lane 1 (local.get $a)) (i64.rotl
                (i64.add (i64x2.extract_lane 0 (local.get $b)) (i64x2.extract_lane 1 (local.get $b))) (i64.const 29))))))
            (local.set $k (i32.wrap_i64 (i64.shr_u (local.get $m) (i64.const 54))))
            (i32.store offset=8 (local.get $tape) (i32.sub (i32.const -3) (local.get $k)))
            (local.set $k (i32.add (global.get $names) (i32.shl (local.get $k) (i32.const 5))))
            (br_if $told (i32.eqz (v128.any_true (v128.or
              (v128.xor (local.get $a) (v128.load (local.get $k)))
              (v128.xor (local.get $b) (v128.load offset=16 (local.get $k)))))))
            ;; It may be beside that place, and is put there if only that is free: two names of every message would else
            ;; be put for each other.
            (local.set $k (i32.xor (local.get $k) (i32.const 32)))
            (i32.store offset=8 (local.get $tape)
              (i32.sub (i32.const -3) (i32.shr_u (i32.sub (local.get $k) (global.get $names)) (i32.const 5))))
            (br_if $told (i32.eqz (v128.any_true (v128.or
              (v128.xor (local.get $a) (v128.load (local.get $k)))
              (v128.xor (local.get $b) (v128.load offset=16 (local.get $k)))))))
            (if (i32.or (i32.load8_u (local.get $k)) (i32.eqz (i32.load8_u (i32.xor (local.get $k) (i32.const 32)))))
              (then (local.set $k (i32.xor (local.get $k) (i32.const 32)))))
            (i32.store offset=8 (local.get $tape)
              (i32.sub (i32.const -1027) (i32.shr_u (i32.sub (local.get $k) (global.get $names)) (i32.const 5))))
            (v128.store (local.get $k) (local.get $a))
            (v128.store offset=16 (local.get $k) (local.get $b))
            (br $told))))
          (if (local.get $other) (then
            (local.set $out (local.get $out_open))
            (i32.store offset=8 (local.get $tape) (i32.const -2))
            (br $told)))
          (local.set $k (local.get $out))
          (local.set $out (i32.add (i32.add (local.get $out) (i32.sub (local.get $pos) (local.get $rest))) (i32.const 1)))
          (loop $copy
            (v128.store align=1 (local.get $k) (v128.load align=1 (local.get $rest)))
            (v128.store offset=16 align=1 (local.get $k) (v128.load offset=16 align=1 (local.get $rest)))
            (local.set $rest (i32.add (local.get $rest) (i32.const 32)))
            (local.set $k (i32.add (local.get $k) (i32.const 32)))
            (br_if $copy (i32.lt_u (local.get $k) (local.get $out))))
          (local.set $extra_out
            (i32.add (local.get $extra_out) (i32.sub (local.get $extra_here) (local.get $extra_open))))
          (i32.store offset=8 (local.get $tape) (i32.sub
            (i32.sub (i32.sub (local.get $out) (global.get $output)) (local.get $extra_out)) (i32.const 1))))
        (local.set $open (i32.const 0))
        (local.set $tape (i32.add (local.get $tape) (i32.const 12)))
        (br $each)))

      (if (i64.ne (i64.or (local.get $more) (local.get $pairs)) (i64.const 0)) (then
        (local.set $extra (i32.add (local.get $extra) (i32.wrap_i64 (i64.sub
          (i64.popcnt (local.get $more)) (i64.popcnt (local.get $pairs))))))))
      (local.set $at (i32.add (local.get $at) (i32.const 64)))
      (br $blocks)))

    (if (local.get $open) (then (return (i32.const -1))))
    (global.set $slashes (local.get $slashes))
    (global.set $output_bytes (i32.sub (local.get $out) (global.get $output)))
    (i32.div_u (i32.sub (local.get $tape) (global.get $tape)) (i32.const 12)))
)
