import { assertEquals, assertLess, assertThrows } from "@std/assert";
import {
  type Caller,
  mayCall,
  mayUse,
  requireEndpoint,
  requireModel,
  requireProtocol,
} from "../../lib/access/permissions.ts";
import { type Group, groupSchema, type KeyRules } from "../../lib/config.ts";
import { ACCESS, type Endpoint, ENDPOINTS, isOperatorCredential } from "../../lib/access/access_table.ts";
import { GatewayError } from "../../lib/errors.ts";
import { workedMs } from "../support/turns.ts";

function caller(group: Partial<Group>, rules: KeyRules = {}): Caller {
  return { keyId: "k", keyName: "k", groupName: "g", group: { ...groupSchema.parse({}), ...group }, rules };
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
    [["*ab*ab*"], "abab", true],
    [["*ab*ab*"], "aba", false],
    [["**"], "acme/one", true],
    [["Acme/*"], "acme/one", false],
    [["a.me/*"], "acme/one", false],
    [["other/*", "acme/*"], "acme/one", true],
  ];
  for (const [models, id, may] of cases) assertEquals(mayUse(caller({ models }), id), may, `${models} ${id}`);
});

Deno.test("mayUse() takes constant time for a hostile glob", () => {
  const slow = caller({ models: [`${"*a".repeat(100)}*b`] });
  const start = workedMs();
  for (let round = 0; round < 1000; round++) {
    assertEquals(mayUse(slow, "a".repeat(256)), false);
  }
  assertLess(workedMs() - start, 2000);
});

Deno.test("the rules of a key narrow those of its group and never extend them", () => {
  const cases: [string[], string[] | undefined, string, boolean][] = [
    // the group's models, the key's, an id
    [["*"], undefined, "acme/one", true],
    [["*"], ["acme/*"], "acme/one", true],
    [["*"], ["acme/*"], "other/one", false],
    [["*"], [], "acme/one", false],
    [["acme/*"], ["*"], "other/one", false],
    [["acme/*"], ["*/one"], "acme/one", true],
    [["acme/*"], ["*/one"], "acme/two", false],
    [[], ["*"], "acme/one", false],
  ];
  for (const [models, narrowed, id, may] of cases) {
    const rules = narrowed === undefined ? {} : { models: narrowed };
    assertEquals(mayUse(caller({ models }, rules), id), may, `${models} and ${narrowed}: ${id}`);
  }
});

Deno.test("mayCall() requires the endpoint in group and key, and its protocol", () => {
  const cases: [Partial<Group>, KeyRules, Endpoint[]][] = [
    [{}, {}, [
      "models",
      "chat",
      "responses",
      "messages",
      "gemini",
      "images",
      "embeddings",
      "rerank",
      "openapi",
      "usage",
    ]],
    [{ endpoints: ["chat", "images"] }, {}, ["chat", "images"]],
    [{ endpoints: ["chat", "images"] }, { endpoints: ["*"] }, ["chat", "images"]],
    [{ endpoints: ["chat", "images"] }, { endpoints: ["images", "models"] }, ["images"]],
    [{}, { endpoints: [] }, []],
    [{ protocols: ["messages"] }, {}, ["models", "messages", "images", "embeddings", "rerank", "openapi", "usage"]],
    [{ protocols: [] }, {}, ["models", "images", "embeddings", "rerank", "openapi", "usage"]],
    [{ protocols: ["chat"], endpoints: ["responses"] }, {}, []],
  ];
  for (const [group, rules, endpoints] of cases) {
    const able = ENDPOINTS.filter((endpoint) => mayCall(caller(group, rules), endpoint));
    assertEquals(able, endpoints, JSON.stringify([group, rules]));
  }
});

Deno.test("requireProtocol() refuses with 403 and names the protocol", () => {
  requireProtocol(caller({}), "chat");
  requireProtocol(caller({ protocols: ["chat"] }), "chat");
  const error = assertThrows(
    () => requireProtocol(caller({ protocols: ["chat"] }), "messages"),
    GatewayError,
    'may not use the protocol "messages"',
  );
  assertEquals(error.status, 403);
});

Deno.test("routes under /anthropic and /v1beta require their protocol, and text endpoints their own", () => {
  for (const [route, { credential, endpoint, protocol }] of Object.entries(ACCESS)) {
    if (credential === "none" || isOperatorCredential(credential)) continue;
    const base = route.includes(" /anthropic/") ? "messages" : route.includes(" /v1beta/") ? "gemini" : undefined;
    const speaks = endpoint === "chat" || endpoint === "responses" ? endpoint : undefined;
    assertEquals(protocol, base ?? speaks, route);
  }
});

Deno.test("requireEndpoint() accepts the endpoints of the group, or all for *", () => {
  requireEndpoint(caller({}), "chat");
  requireEndpoint(caller({ endpoints: ["models", "chat"] }), "chat");
  const error = assertThrows(() => requireEndpoint(caller({ endpoints: ["models"] }), "chat"), GatewayError, '"chat"');
  assertEquals(error.status, 403);
  assertThrows(() => requireEndpoint(caller({ endpoints: [] }), "models"), GatewayError);
  assertThrows(() => requireEndpoint(caller({}, { endpoints: ["chat"] }), "models"), GatewayError, '"models"');
});

Deno.test("requireModel() refuses with 403 and names the model", () => {
  requireModel(caller({ models: ["acme/*"] }), "acme/one");
  const error = assertThrows(
    () => requireModel(caller({ models: ["acme/*"] }), "other/one"),
    GatewayError,
    'may not use model "other/one"',
  );
  assertEquals([error.status, error.param], [403, "model"]);
  assertThrows(() => requireModel(caller({}, { models: ["acme/*"] }), "other/one"), GatewayError, '"other/one"');
});
