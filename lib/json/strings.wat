;; Finds the strings of a JSON text in UTF-8, in blocks of 64 bytes, and decodes escapes of one letter (`\n`).
;;
;; It ignores the structure of the text. The parser that follows meets the strings in the order of the tape. Bit n of a mask
;; is byte n of the block. The code that builds a mask from four vectors is repeated, because a function for it costs 10 % for
;; Latin texts and doubles the time for Chinese ones.
;;
;; Strings are copied in whole blocks, beyond their ends: a loop of variable length is mispredicted by the processor each
;; time. The engine checks the bounds of each memory access, so fewer accesses pay more than less arithmetic.
(module
  (memory (export "memory") 39)
  ;; The code repeats these addresses as constants: reading a global each time costs 4 to 7 %.
  ;; Address of the text: at most 1,048,576 bytes; the 64 bytes behind it are written here. A multiple of 64.
  (global $input (export "input") i32 (i32.const 430080))
  ;; Address of the contents of copied strings, in UTF-8, never longer than the text. Each keeps its closing quote, so that
  ;; an incomplete character at its end does not merge with the next string.
  (global $output (export "output") i32 (i32.const 1478720))
  (global $output_bytes (export "outputBytes") (mut i32) (i32.const 0))
  ;; 1 if a string contains the escape `\/`, which needs no backslash.
  (global $slashes (export "slashes") (mut i32) (i32.const 0))
  ;; Address of the tape, which ends where the text begins. It has three words for each string: the offset of its closing
  ;; quote; the number of bytes minus the number of UTF-16 code units before that; and one of
  ;;   0 and more: the string was copied, and this is its end in the output, in code units
  ;;   -1: it has escapes that are not decoded here
  ;;   -2 - n: it is the cached name n; -1026 - n: it is a new name, cached as name n
  (global $tape (export "tape") i32 (i32.const 36864))
  ;; Address of the cache of names: 1024 slots of 32 bytes, padded with zeros. A name can be in either of two adjacent slots.
  (global $names (export "names") i32 (i32.const 4096))

  ;; At 0: the character that an escape of this letter means; 0 for other letters.
  (data (i32.const 0x22) "\22")
  (data (i32.const 0x2f) "/")
  (data (i32.const 0x5c) "\5c")
  (data (i32.const 0x62) "\08")
  (data (i32.const 0x66) "\0c")
  (data (i32.const 0x6e) "\0a")
  (data (i32.const 0x72) "\0d")
  (data (i32.const 0x74) "\09")
  ;; At 256: 32 bytes of ones, then 32 zeros.
  (data (i32.const 256) "\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff\ff")

  ;; Returns the number of strings; -1 if there are too many, or one has no end or contains a control character.
  ;; A backslash between strings may be missed; the parser refuses such a text.
  ;; All strings are copied, except names.
  (func (export "find") (param $length i32) (result i32)
    (local $at i32) (local $end i32) (local $tape i32)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128) (local $t v128)
    (local $quote v128) (local $backslash v128) (local $space v128)
    ;; Masks of a block: quotes and backslashes not yet handled; bytes inside strings; control characters; continuation bytes
    ;; of a character; first bytes of characters with two code units.
    (local $events i64) (local $inside i64) (local $controls i64) (local $more i64) (local $pairs i64)
    (local $m i64) (local $before i64)
    ;; Bytes minus code units before the block, before the event (a quote or backslash), and before the open string.
    (local $extra i32) (local $extra_here i32) (local $extra_open i32)
    ;; The same of the output.
    (local $extra_out i32)
    ;; The open string, or 0; the end of the copied strings in the output.
    (local $open i32) (local $out i32)
    ;; Distance from a byte of the open string to its copy. Without an open string, copies are overwritten later.
    (local $shift i32)
    ;; 1 if the open string has an escape that is not decoded here.
    (local $other i32)
    ;; The letter of an escape whose backslash ended the block.
    (local $letter i32)
    ;; Nonzero if the block has a control character or a character beyond ASCII.
    (local $special i32)
    (local $pos i32) (local $to i32) (local $k i32) (local $code i32)

    (local.set $at (i32.const 430080))
    (local.set $end (i32.add (local.get $at) (local.get $length)))
    (local.set $tape (i32.const 36864))
    (global.set $slashes (i32.const 0))
    (local.set $out (i32.const 1478720))
    (local.set $shift (i32.const 1048640))
    (local.set $quote (i8x16.splat (i32.const 0x22)))
    (local.set $backslash (i8x16.splat (i32.const 0x5c)))
    (local.set $space (i8x16.splat (i32.const 0x20)))
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
      (local.set $events (i64.or
        (i64.extend_i32_u (i32.or
          (i8x16.bitmask
            (v128.or (i8x16.eq (local.get $a) (local.get $quote)) (i8x16.eq (local.get $a) (local.get $backslash))))
          (i32.shl (i8x16.bitmask
            (v128.or (i8x16.eq (local.get $b) (local.get $quote)) (i8x16.eq (local.get $b) (local.get $backslash))))
            (i32.const 16))))
        (i64.shl (i64.extend_i32_u (i32.or
          (i8x16.bitmask
            (v128.or (i8x16.eq (local.get $c) (local.get $quote)) (i8x16.eq (local.get $c) (local.get $backslash))))
          (i32.shl (i8x16.bitmask
            (v128.or (i8x16.eq (local.get $d) (local.get $quote)) (i8x16.eq (local.get $d) (local.get $backslash))))
            (i32.const 16)))) (i64.const 32))))
      (if (local.get $open) (then
        (local.set $to (i32.add (local.get $at) (local.get $shift)))
        (v128.store offset=0 align=1 (local.get $to) (local.get $a))
        (v128.store offset=16 align=1 (local.get $to) (local.get $b))
        (v128.store offset=32 align=1 (local.get $to) (local.get $c))
        (v128.store offset=48 align=1 (local.get $to) (local.get $d))
        ;; The block before ended with a backslash: write the decoded letter over it again.
        (if (i32.eq (local.get $letter) (local.get $at)) (then
          (i32.store8 (local.get $to) (i32.load8_u (i32.load8_u (local.get $at))))
          (local.set $events (i64.and (local.get $events) (i64.const -2)))))))

      ;; As signed numbers, bytes beyond ASCII are below 0.
      (local.set $special (i8x16.bitmask (i8x16.lt_s (i8x16.min_s (i8x16.min_s (local.get $a) (local.get $b))
        (i8x16.min_s (local.get $c) (local.get $d))) (local.get $space))))
      (local.set $inside (i64.const 0))
      (local.set $controls (i64.const 0))
      (local.set $more (i64.const 0))
      (local.set $pairs (i64.const 0))
      (if (local.get $special) (then
        (local.set $inside (i64.sub (i64.extend_i32_u (i32.eqz (local.get $open))) (i64.const 1)))
        ;; Control characters are allowed between strings.
        (local.set $t (i8x16.splat (i32.const 0x1f)))
        (if (i8x16.bitmask (i8x16.le_u (i8x16.min_u (i8x16.min_u (local.get $a) (local.get $b))
            (i8x16.min_u (local.get $c) (local.get $d))) (local.get $t))) (then
          (local.set $controls (i64.or
            (i64.extend_i32_u (i32.or
              (i8x16.bitmask (i8x16.eq (local.get $a) (i8x16.min_u (local.get $a) (local.get $t))))
              (i32.shl (i8x16.bitmask (i8x16.eq (local.get $b) (i8x16.min_u (local.get $b) (local.get $t)))) (i32.const 16))))
            (i64.shl (i64.extend_i32_u (i32.or
              (i8x16.bitmask (i8x16.eq (local.get $c) (i8x16.min_u (local.get $c) (local.get $t))))
              (i32.shl (i8x16.bitmask (i8x16.eq (local.get $d) (i8x16.min_u (local.get $d) (local.get $t)))) (i32.const 16))))
              (i64.const 32))))))
        (if (i8x16.bitmask (v128.or (v128.or (local.get $a) (local.get $b)) (v128.or (local.get $c) (local.get $d)))) (then
          (local.set $t (i8x16.splat (i32.const 0xc0)))
          (local.set $more (i64.or
            (i64.extend_i32_u (i32.or (i8x16.bitmask (i8x16.lt_s (local.get $a) (local.get $t)))
              (i32.shl (i8x16.bitmask (i8x16.lt_s (local.get $b) (local.get $t))) (i32.const 16))))
            (i64.shl (i64.extend_i32_u (i32.or (i8x16.bitmask (i8x16.lt_s (local.get $c) (local.get $t)))
              (i32.shl (i8x16.bitmask (i8x16.lt_s (local.get $d) (local.get $t))) (i32.const 16)))) (i64.const 32))))
          (local.set $t (i8x16.splat (i32.const 0xf0)))
          (if (i8x16.bitmask (i8x16.ge_u (i8x16.max_u (i8x16.max_u (local.get $a) (local.get $b))
              (i8x16.max_u (local.get $c) (local.get $d))) (local.get $t))) (then
            (local.set $pairs (i64.or
              (i64.extend_i32_u (i32.or (i8x16.bitmask (i8x16.ge_u (local.get $a) (local.get $t)))
                (i32.shl (i8x16.bitmask (i8x16.ge_u (local.get $b) (local.get $t))) (i32.const 16))))
              (i64.shl (i64.extend_i32_u (i32.or (i8x16.bitmask (i8x16.ge_u (local.get $c) (local.get $t)))
                (i32.shl (i8x16.bitmask (i8x16.ge_u (local.get $d) (local.get $t))) (i32.const 16)))) (i64.const 32))))))))))

      (block $next
        (br_if $next (i64.eqz (local.get $events)))
        (loop $each
          ;; A separate loop for escapes: the engine keeps its variables in registers.
          (block $mark (loop $escapes
            (local.set $pos (i32.add (local.get $at) (i32.wrap_i64 (i64.ctz (local.get $events)))))
            (local.set $code (i32.load16_u align=1 (local.get $pos)))
            (br_if $mark (i32.ne (i32.and (local.get $code) (i32.const 0xff)) (i32.const 0x5c)))
            (local.set $shift (i32.sub (local.get $shift) (i32.const 1)))
            (local.set $to (i32.add (local.get $pos) (local.get $shift)))
            (local.set $k (i32.load8_u (i32.shr_u (local.get $code) (i32.const 8))))
            (if (i32.eqz (local.get $k)) (then (local.set $other (i32.const 1))))
            (if (i32.eq (local.get $k) (i32.const 0x2f)) (then (global.set $slashes (i32.const 1))))
            (i32.store8 offset=1 (local.get $to) (local.get $k))
            (v128.store offset=2 align=1 (local.get $to) (v128.load offset=2 align=1 (local.get $pos)))
            (v128.store offset=18 align=1 (local.get $to) (v128.load offset=18 align=1 (local.get $pos)))
            (v128.store offset=34 align=1 (local.get $to) (v128.load offset=34 align=1 (local.get $pos)))
            (v128.store offset=50 align=1 (local.get $to) (v128.load offset=50 align=1 (local.get $pos)))
            ;; Clear the backslash and its letter. Blocks begin at multiples of 64, and shifts count modulo 64.
            (local.set $events
              (i64.and (local.get $events) (i64.rotl (i64.const -4) (i64.extend_i32_u (local.get $pos)))))
            (br_if $escapes (i64.ne (local.get $events) (i64.const 0)))
            (local.set $letter (i32.add (local.get $pos) (i32.const 1)))
            (br $next)))

          (local.set $events (i64.and (local.get $events) (i64.sub (local.get $events) (i64.const 1))))
          (local.set $extra_here (local.get $extra))
          (if (local.get $special) (then
            (local.set $before (i64.shl (i64.const -1) (i64.extend_i32_u (local.get $pos))))
            (local.set $inside (i64.xor (local.get $inside) (local.get $before)))
            (if (i64.ne (i64.or (local.get $more) (local.get $pairs)) (i64.const 0)) (then
              (local.set $before (i64.xor (local.get $before) (i64.const -1)))
              (local.set $extra_here (i32.add (local.get $extra) (i32.wrap_i64 (i64.sub
                (i64.popcnt (i64.and (local.get $more) (local.get $before)))
                (i64.popcnt (i64.and (local.get $pairs) (local.get $before)))))))))))

          (block $ends
            (br_if $ends (local.get $open))
            (local.set $open (i32.add (local.get $pos) (i32.const 1)))
            (local.set $extra_open (local.get $extra_here))
            (local.set $other (i32.const 0))
            (local.set $shift (i32.sub (local.get $out) (local.get $open)))
            ;; A string without escapes that ends within the block is copied at its end, if at all: most are names.
            (block $long
              (br_if $long (i64.eqz (local.get $events)))
              (local.set $pos (i32.add (local.get $at) (i32.wrap_i64 (i64.ctz (local.get $events)))))
              (local.set $code (i32.load16_u align=1 (local.get $pos)))
              (br_if $long (i32.eq (i32.and (local.get $code) (i32.const 0xff)) (i32.const 0x5c)))
              (local.set $events (i64.and (local.get $events) (i64.sub (local.get $events) (i64.const 1))))
              (if (local.get $special) (then
                (local.set $before (i64.shl (i64.const -1) (i64.extend_i32_u (local.get $pos))))
                (local.set $inside (i64.xor (local.get $inside) (local.get $before)))
                (if (i64.ne (i64.or (local.get $more) (local.get $pairs)) (i64.const 0)) (then
                  (local.set $before (i64.xor (local.get $before) (i64.const -1)))
                  (local.set $extra_here (i32.add (local.get $extra) (i32.wrap_i64 (i64.sub
                    (i64.popcnt (i64.and (local.get $more) (local.get $before)))
                    (i64.popcnt (i64.and (local.get $pairs) (local.get $before)))))))))))
              (br $ends))
            (v128.store offset=0 align=1 (local.get $out) (v128.load offset=0 align=1 (local.get $open)))
            (v128.store offset=16 align=1 (local.get $out) (v128.load offset=16 align=1 (local.get $open)))
            (v128.store offset=32 align=1 (local.get $out) (v128.load offset=32 align=1 (local.get $open)))
            (v128.store offset=48 align=1 (local.get $out) (v128.load offset=48 align=1 (local.get $open)))
            (br_if $each (i64.ne (local.get $events) (i64.const 0)))
            (br $next))

          ;; A string ends.
          (if (i32.eq (local.get $tape) (i32.const 430080)) (then (return (i32.const -1))))
          (i32.store (local.get $tape) (i32.sub (local.get $pos) (i32.const 430080)))
          (i32.store offset=4 (local.get $tape) (local.get $extra_here))
          (block $told
            (block $copied (if (i32.eq (i32.add (local.get $open) (local.get $shift)) (local.get $out)) (then
              (block $value
                (br_if $value (i32.ne (local.get $code) (i32.const 0x3a22)))
                (local.set $k (i32.sub (local.get $pos) (local.get $open)))
                (br_if $value (i32.gt_u (local.get $k) (i32.const 32)))
                ;; The bytes of the name, padded with zeros.
                (local.set $k (i32.sub (i32.const 288) (local.get $k)))
                (local.set $a (v128.and (v128.load align=1 (local.get $open)) (v128.load align=1 (local.get $k))))
                (local.set $b (v128.and
                  (v128.load offset=16 align=1 (local.get $open)) (v128.load offset=16 align=1 (local.get $k))))
                (local.set $m (i64.add
                  (i64.mul (i64x2.extract_lane 0 (local.get $a)) (i64.const 0x9e3779b97f4a7c15))
                  (i64.mul (i64.const 0xbf58476d1ce4e5b9) (i64.xor (i64x2.extract_lane 1 (local.get $a)) (i64.rotl
                    (i64.add (i64x2.extract_lane 0 (local.get $b)) (i64x2.extract_lane 1 (local.get $b))) (i64.const 29))))))
                (local.set $k (i32.wrap_i64 (i64.shr_u (local.get $m) (i64.const 54))))
                (i32.store offset=8 (local.get $tape) (i32.sub (i32.const -2) (local.get $k)))
                (local.set $k (i32.add (i32.const 4096) (i32.shl (local.get $k) (i32.const 5))))
                (br_if $told (i32.eqz (v128.any_true (v128.or
                  (v128.xor (local.get $a) (v128.load (local.get $k)))
                  (v128.xor (local.get $b) (v128.load offset=16 (local.get $k)))))))
                ;; Try the adjacent slot too, and use it if it is free: otherwise two frequent names could replace each other
                ;; in every message.
                (local.set $k (i32.xor (local.get $k) (i32.const 32)))
                (i32.store offset=8 (local.get $tape)
                  (i32.sub (i32.const -2) (i32.shr_u (i32.sub (local.get $k) (i32.const 4096)) (i32.const 5))))
                (br_if $told (i32.eqz (v128.any_true (v128.or
                  (v128.xor (local.get $a) (v128.load (local.get $k)))
                  (v128.xor (local.get $b) (v128.load offset=16 (local.get $k)))))))
                (if (i32.or (i32.load8_u (local.get $k)) (i32.eqz (i32.load8_u (i32.xor (local.get $k) (i32.const 32)))))
                  (then (local.set $k (i32.xor (local.get $k) (i32.const 32)))))
                (i32.store offset=8 (local.get $tape)
                  (i32.sub (i32.const -1026) (i32.shr_u (i32.sub (local.get $k) (i32.const 4096)) (i32.const 5))))
                (v128.store (local.get $k) (local.get $a))
                (v128.store offset=16 (local.get $k) (local.get $b))
                (br $told))
              (br_if $copied (i32.lt_u (local.get $open) (local.get $at)))
              (v128.store offset=0 align=1 (local.get $out) (v128.load offset=0 align=1 (local.get $open)))
              (v128.store offset=16 align=1 (local.get $out) (v128.load offset=16 align=1 (local.get $open)))
              (v128.store offset=32 align=1 (local.get $out) (v128.load offset=32 align=1 (local.get $open)))
              (v128.store offset=48 align=1 (local.get $out) (v128.load offset=48 align=1 (local.get $open)))
              (br $copied))))
            (if (local.get $other) (then
              (i32.store offset=8 (local.get $tape) (i32.const -1))
              (br $told)))
            (local.set $out (i32.add (i32.add (local.get $pos) (local.get $shift)) (i32.const 1)))
            (local.set $extra_out
              (i32.add (local.get $extra_out) (i32.sub (local.get $extra_here) (local.get $extra_open))))
            (i32.store offset=8 (local.get $tape) (i32.sub
              (i32.sub (i32.sub (local.get $out) (i32.const 1478720)) (local.get $extra_out)) (i32.const 1))))
          (local.set $open (i32.const 0))
          (local.set $tape (i32.add (local.get $tape) (i32.const 12)))
          (br_if $each (i64.ne (local.get $events) (i64.const 0)))))

      (if (local.get $special) (then
        (if (i64.ne (i64.and (local.get $controls) (local.get $inside)) (i64.const 0)) (then (return (i32.const -1))))
        (local.set $extra (i32.add (local.get $extra) (i32.wrap_i64 (i64.sub
          (i64.popcnt (local.get $more)) (i64.popcnt (local.get $pairs))))))))
      (local.set $at (i32.add (local.get $at) (i32.const 64)))
      (br $blocks)))

    (if (local.get $open) (then (return (i32.const -1))))
    (global.set $output_bytes (i32.sub (local.get $out) (global.get $output)))
    (i32.div_u (i32.sub (local.get $tape) (global.get $tape)) (i32.const 12)))
)
