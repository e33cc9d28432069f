import { assertEquals, assertThrows } from "@std/assert";
import { parseDuration, parseMoment } from "../../lib/store/times.ts";

Deno.test("parseDuration() reads seconds, minutes, hours and days", () => {
  const cases: [string, number][] = [
    ["0s", 0],
    ["90s", 90_000],
    ["15m", 900_000],
    ["24h", 86_400_000],
    ["30d", 2_592_000_000],
    ["36525d", 3_155_760_000_000],
  ];
  for (const [text, ms] of cases) assertEquals(parseDuration(text), ms, text);
});

Deno.test("parseDuration() rejects other texts, and spans beyond 100 years", () => {
  for (const text of ["", "5", "s", "-1s", "1.5h", "1w", "1 d", " 1d", "1d ", "1D", "36526d", "999999999999d", "١d"]) {
    assertThrows(() => parseDuration(text), RangeError, `Cannot read the time "${text}"`);
  }
});

Deno.test("parseMoment() reads a day, an exact time, or a span from now", () => {
  const cases: [string, number][] = [
    ["30d", 2_592_005_000],
    ["0s", 5000],
    ["1970-01-02", 86_400_000],
    ["1970-01-02T00:00Z", 86_400_000],
    ["1970-01-02T00:00:01Z", 86_401_000],
    ["1970-01-02T00:00:01.500Z", 86_401_500],
    ["1970-01-02T01:00:00+01:00", 86_400_000],
    ["2028-02-29", Date.UTC(2028, 1, 29)],
  ];
  for (const [text, moment] of cases) assertEquals(parseMoment(text, 5000), moment, text);
});

Deno.test("parseMoment() rejects other texts and invalid calendar days", () => {
  const cases = ["", "2027", "2027-01", "2027-02-31", "2027-13-01", "2027-01-01T25:00Z", "01/02/2027", "1", "tomorrow"];
  for (const text of cases) assertThrows(() => parseMoment(text, 0), RangeError, `Cannot read the moment "${text}"`);
  // By UTC these are in the years 10000 and -1.
  for (const text of ["9999-12-31T23:59:59-01:00", "0000-01-01T00:00+01:00"]) {
    assertThrows(() => parseMoment(text, 0), RangeError, `Cannot read the moment "${text}"`);
  }
  assertThrows(() => parseMoment("5w", 0), RangeError, 'Cannot read the time "5w"');
});
