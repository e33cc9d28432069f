import { assertEquals, assertLess, assertThrows } from "@std/assert";
import type { Caller } from "../../lib/access/caller.ts";
import { mayUse, requireEndpoint, requireModel } from "../../lib/access/permissions.ts";
import type { Group } from "../../lib/config.ts";
import { GatewayError } from "../../lib/errors.ts";

function caller(group: Partial<Group>): Caller {
  return { keyId: "k", keyName: "k", groupName: "g", group: { models: ["*"], endpoints: ["*"], ...group } };
}

Deno.test("mayUse() matches whole ids, with * for any text", () => {
  const cases: [string[], string, boolean][] = [
    [["*"], "acme/one", true],
    [[], "acme/one", false],
    [["acme/one"], "acme/one", true],
    [["acme/one"], "acme/one-mini", false],
    [["acme/one"], "xacme/one", false],
    [["acme/*"], "acme/one", true],
    [["acme/*"], "acme-labs/one", false],
    [["acme/*"], "acme/", true],
    [["*/one"], "acme/one", true],
    [["*/one"], "acme/one2", false],
    [["a*e/o*e"], "acme/one", true],
    [["a*a"], "a", false],
    [["ab*ba"], "aba", false],
    [["*a*b*"], "xxaxxbxx", true],
    [["*a*b*"], "xxbxxaxx", false],
    [["a*b*c"], "abc", true],
    [["a*bc*c"], "abc", false],
    [["**"], "acme/one", true],
    [["Acme/*"], "acme/one", false],
    [["a.me/*"], "acme/one", false],
    [["other/*", "acme/*"], "acme/one", true],
  ];
  for (const [models, id, may] of cases) assertEquals(mayUse({ models, endpoints: [] }, id), may, `${models} ${id}`);
});

Deno.test("mayUse() takes no time for a glob made to take long", () => {
  const start = performance.now();
  for (let round = 0; round < 1000; round++) {
    assertEquals(mayUse({ models: [`${"*a".repeat(100)}*b`], endpoints: [] }, "a".repeat(256)), false);
  }
  assertLess(performance.now() - start, 2000);
});

Deno.test("requireEndpoint() lets pass what the group names, or everything for *", () => {
  requireEndpoint(caller({}), "chat");
  requireEndpoint(caller({ endpoints: ["models", "chat"] }), "chat");
  const error = assertThrows(() => requireEndpoint(caller({ endpoints: ["models"] }), "chat"), GatewayError, '"chat"');
  assertEquals(error.status, 403);
  assertThrows(() => requireEndpoint(caller({ endpoints: [] }), "models"), GatewayError);
});

Deno.test("requireModel() refuses with 403 and names the model", () => {
  requireModel(caller({ models: ["acme/*"] }), "acme/one");
  const error = assertThrows(
    () => requireModel(caller({ models: ["acme/*"] }), "other/one"),
    GatewayError,
    'may not use model "other/one"',
  );
  assertEquals([error.status, error.param], [403, "model"]);
});
