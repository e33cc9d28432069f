import { assert, assertEquals, assertThrows } from "@std/assert";
import { createFailures, type OwnFailures } from "../../lib/access/failures.ts";
import { GatewayError } from "../../lib/errors.ts";

function isAdmitted(failures: OwnFailures, address: string | undefined, credential = "some key"): boolean {
  try {
    failures.admit(address, credential);
    return true;
  } catch (error) {
    assert(error instanceof GatewayError && error.kind === "limited");
    return false;
  }
}

function fail(failures: OwnFailures, address: string | undefined, times: number): boolean[] {
  return Array.from({ length: times }, () => failures.failed(address));
}

Deno.test("after 20 wrong keys an address is not listened to until the minute is over, and told how long that is", () => {
  let now = 1000;
  const failures = createFailures({ monotonic: () => now });
  assertEquals(failures.watching, false);
  fail(failures, "192.0.2.1", 19);
  assert(failures.watching);
  assert(isAdmitted(failures, "192.0.2.1"));
  now += 20_000;
  assertEquals(fail(failures, "192.0.2.1", 2), [true, false]);
  const { retryAfterMs } = assertThrows(() => failures.admit("192.0.2.1", "key"), GatewayError);
  assertEquals(retryAfterMs, 40_000);
  assert(isAdmitted(failures, "192.0.2.2"));
  now += 39_999;
  assert(!isAdmitted(failures, "192.0.2.1"));
  now += 1;
  assert(isAdmitted(failures, "192.0.2.1"));
  assertEquals(failures.watching, false);
});

Deno.test("addresses are counted as their owners are: an IPv6 network of 64 bits is one, mapped IPv4 is IPv4", () => {
  const cases: [counted: string, asks: string, same: boolean][] = [
    ["2001:db8::1", "2001:db8::ffff:2", true],
    ["2001:db8::1", "2001:db8:0:1::1", false],
    ["::ffff:192.0.2.7", "192.0.2.7", true],
    ["192.0.2.7", "192.0.2.8", false],
    // Of the other family, and the same number.
    ["1.2.3.4", "0:0:102:304::1", false],
    ["not an address", "not an address", true],
  ];
  for (const [counted, asks, same] of cases) {
    const failures = createFailures({ monotonic: () => 0 });
    fail(failures, counted, 20);
    assertEquals(isAdmitted(failures, asks), !same, `${counted} ${asks}`);
  }
});

Deno.test("the machine itself and addresses that nobody knows are not counted", () => {
  const failures = createFailures({ monotonic: () => 0 });
  for (const address of ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", undefined]) {
    fail(failures, address, 100);
    assert(isAdmitted(failures, address));
  }
  assertEquals(failures.watching, false);
});

Deno.test("a key that has worked from a watched address goes on working there, and only there", () => {
  const failures = createFailures({ monotonic: () => 0 });
  failures.worked("192.0.2.1", "before anybody watched");
  fail(failures, "192.0.2.1", 1);
  assertEquals([1, 2].map(() => failures.worked("192.0.2.1", "good")), [true, false]);
  fail(failures, "192.0.2.1", 50);
  fail(failures, "192.0.2.2", 50);
  assert(isAdmitted(failures, "192.0.2.1", "good"));
  assert(!isAdmitted(failures, "192.0.2.1", "before anybody watched"));
  assert(!isAdmitted(failures, "192.0.2.2", "good"));
});

Deno.test("no more than 16 working keys are remembered of an address", () => {
  const failures = createFailures({ monotonic: () => 0 });
  fail(failures, "192.0.2.1", 20);
  for (let at = 0; at < 40; at++) failures.worked("192.0.2.1", `key ${at}`);
  const working = Array.from({ length: 40 }, (_, at) => isAdmitted(failures, "192.0.2.1", `key ${at}`));
  assertEquals(working.filter(Boolean).length, 16);
});

Deno.test("at most 10,000 addresses are watched: the oldest goes, the others stay", () => {
  const failures = createFailures({ monotonic: () => 0 });
  const address = (at: number) => `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`;
  for (let at = 0; at < 10_000; at++) fail(failures, address(at), 20);
  assert(!isAdmitted(failures, address(0)));
  fail(failures, address(10_000), 20);
  assert(isAdmitted(failures, address(0)));
  assert(!isAdmitted(failures, address(1)));
  assert(!isAdmitted(failures, address(10_000)));
});

Deno.test("an address that is new pushes out those whose minute is over, and no other", () => {
  let now = 1_000_000;
  const failures = createFailures({ monotonic: () => now });
  fail(failures, "192.0.2.1", 20);
  now += 30_000;
  fail(failures, "192.0.2.2", 20);
  assertEquals(["192.0.2.1", "192.0.2.2"].map((address) => isAdmitted(failures, address)), [false, false]);
  now += 30_000;
  fail(failures, "192.0.2.3", 20);
  assertEquals(["192.0.2.2", "192.0.2.3"].map((address) => isAdmitted(failures, address)), [false, false]);
  now += 60_000;
  assertEquals(["192.0.2.2", "192.0.2.3"].map((address) => isAdmitted(failures, address)), [true, true]);
  assertEquals(failures.watching, false);
});
