import { assertEquals, assertThrows } from "@std/assert";
import { authenticateAdmin } from "../../lib/access/authenticate_admin.ts";
import { hashKey } from "../../lib/access/keys.ts";
import { GatewayError } from "../../lib/errors.ts";

const KEY = "the-admin-key-of-this-test";
const ADMIN = { hash: hashKey(KEY) };

Deno.test('authenticateAdmin() accepts the admin key with any spelling of "Bearer"', () => {
  for (const scheme of ["Bearer", "bearer", "BEARER"]) {
    authenticateAdmin(new Headers({ authorization: `${scheme} ${KEY}` }), ADMIN);
  }
  authenticateAdmin(new Headers({ authorization: `Bearer  ${KEY}` }), ADMIN);
  authenticateAdmin(new Headers({ authorization: `Bearer ${KEY}`, "x-api-key": KEY }), ADMIN);
  authenticateAdmin(new Headers({ authorization: `Bearer ${KEY}`, "x-api-key": "" }), ADMIN);
});

Deno.test("authenticateAdmin() compares whole hashes", () => {
  // With this many keys, some begin or end like the valid one.
  for (let round = 0; round < 3000; round++) {
    const headers = new Headers({ authorization: `Bearer ${KEY}${round}` });
    assertThrows(() => authenticateAdmin(headers, ADMIN), GatewayError, "The admin key is not valid");
  }
  const other = new Headers({ authorization: `Bearer ${KEY}`, "x-api-key": `${KEY}0` });
  assertThrows(() => authenticateAdmin(other, ADMIN), GatewayError, "The admin key is not valid");
  const long = KEY.padEnd(257, "x");
  const headers = new Headers({ authorization: `Bearer ${long}` });
  assertThrows(() => authenticateAdmin(headers, { hash: hashKey(long) }), GatewayError, "The admin key is not valid");
  const short = { hash: ADMIN.hash.slice(0, 10) };
  assertThrows(() => authenticateAdmin(new Headers({ authorization: `Bearer ${KEY}` }), short), GatewayError);
});

Deno.test("authenticateAdmin() explains how to send the key if there is no bearer token", () => {
  for (const headers of [{}, { authorization: KEY }, { authorization: `Basic ${KEY}` }, { "x-api-key": KEY }]) {
    const error = assertThrows(
      () => authenticateAdmin(new Headers(headers as Record<string, string>), ADMIN),
      GatewayError,
      "Missing admin key",
    );
    assertEquals([error.status, error.headers["www-authenticate"]], [401, "Bearer"]);
  }
});
