import { assert, assertEquals } from "@std/assert";
import { createFailedAttempts, type FailedAttempt, type FailedAttempts } from "../../lib/access/failed_attempts.ts";

/** True if the next wrong key from this address would be refused. Counts nothing. */
function isThrottled(failures: FailedAttempts, address: string | undefined): boolean {
  return failures.retryAfterMs(address) !== undefined;
}

function fail(failures: FailedAttempts, address: string | undefined, times: number): FailedAttempt[] {
  return Array.from({ length: times }, () => failures.failed(address));
}

Deno.test("FailedAttempts throttles an address after 20 wrong keys until the minute is over", () => {
  let now = 1000;
  const failures = createFailedAttempts({ monotonic: () => now });
  assertEquals(fail(failures, "192.0.2.1", 19), Array(19).fill({}));
  assert(!isThrottled(failures, "192.0.2.1"));
  now += 20_000;
  assertEquals(fail(failures, "192.0.2.1", 3), [{ isLast: true }, { retryAfterMs: 40_000 }, { retryAfterMs: 40_000 }]);
  assert(!isThrottled(failures, "192.0.2.2"));
  now += 39_999;
  assertEquals(fail(failures, "192.0.2.1", 1), [{ retryAfterMs: 1 }]);
  now += 1;
  assertEquals(fail(failures, "192.0.2.1", 20), [...Array(19).fill({}), { isLast: true }]);
});

Deno.test("FailedAttempts counts an IPv6 /64 as one address, and mapped IPv4 as IPv4", () => {
  const cases: [counted: string, asks: string, same: boolean][] = [
    ["2001:db8::1", "2001:db8::ffff:2", true],
    ["2001:db8::1", "2001:db8:0:1::1", false],
    ["::ffff:192.0.2.7", "192.0.2.7", true],
    ["192.0.2.7", "192.0.2.8", false],
    // An address of the other family with the same number.
    ["1.2.3.4", "0:0:102:304::1", false],
    ["not an address", "not an address", true],
  ];
  for (const [counted, asks, same] of cases) {
    const failures = createFailedAttempts({ monotonic: () => 0 });
    fail(failures, counted, 20);
    assertEquals(isThrottled(failures, asks), same, `${counted} ${asks}`);
  }
});

Deno.test("FailedAttempts does not count local and unknown addresses", () => {
  const failures = createFailedAttempts({ monotonic: () => 0 });
  for (const address of ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", undefined]) {
    fail(failures, address, 100);
    assert(!isThrottled(failures, address));
  }
  // But for keys of operators.
  for (let times = 0; times < 20; times++) failures.failed("127.0.0.1", { countsOwn: true });
  assert(isThrottled(failures, "127.0.0.1"));
  assertEquals(fail(failures, "127.0.0.1", 1), [{}]);
});

Deno.test("FailedAttempts watches at most 10,000 addresses and evicts the oldest", () => {
  const failures = createFailedAttempts({ monotonic: () => 0 });
  const address = (at: number) => `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`;
  for (let at = 0; at < 10_000; at++) fail(failures, address(at), at < 2 ? 20 : 1);
  assert(isThrottled(failures, address(0)));
  fail(failures, address(10_000), 20);
  assert(!isThrottled(failures, address(0)));
  assert(isThrottled(failures, address(1)));
  assert(isThrottled(failures, address(10_000)));
});

Deno.test("FailedAttempts evicts only addresses whose minute is over for a new one", () => {
  let now = 1_000_000;
  const failures = createFailedAttempts({ monotonic: () => now });
  fail(failures, "192.0.2.1", 20);
  now += 30_000;
  fail(failures, "192.0.2.2", 20);
  assertEquals(["192.0.2.1", "192.0.2.2"].map((address) => isThrottled(failures, address)), [true, true]);
  now += 30_000;
  fail(failures, "192.0.2.3", 20);
  assertEquals(["192.0.2.2", "192.0.2.3"].map((address) => isThrottled(failures, address)), [true, true]);
  now += 60_000;
  assertEquals(["192.0.2.2", "192.0.2.3"].map((address) => isThrottled(failures, address)), [false, false]);
});
