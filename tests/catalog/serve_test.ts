import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { type CatalogFormat, getModel, listModels, listVendor } from "../../lib/catalog/serve.ts";
import { type Group, groupSchema, type KeyRules } from "../../lib/config.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { GatewayError } from "../../lib/errors.ts";
import { createGateway } from "../../lib/gateway.ts";
import { createClientTracker } from "../../lib/server/client_tracker.ts";
import { createDrain } from "../../lib/server/drain.ts";
import { PhaseTimers } from "../../lib/phase_timers.ts";
import type { RouteContext } from "../../lib/server/router.ts";
import type { Json } from "../../lib/json/mod.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import { NO_BODY } from "../support/no_body.ts";
import { plainModel } from "../support/plain_model.ts";

const FORMATS: readonly CatalogFormat[] = ["compatible", "native"];

function row(id: string, output = "text"): Json {
  return plainModel({
    id,
    architecture: { output_modalities: [output] },
    targets: [{ upstream: "embedded", model: output === "image" ? "canvas" : "echo" }],
  });
}

const config = parseConfig({
  models: [row("acme/one"), row("acme/two"), row("acme/paint", "image"), row("zeta/brush", "image"), row("beta/b")],
});

/** The context of a request by a caller who may use these models, or with these rules. */
function context(
  params: Record<string, string> = {},
  models: string[] = ["*"],
  { group, rules = {} }: { group?: Partial<Group>; rules?: KeyRules } = {},
): RouteContext {
  const gateway = createGateway({ config, store: openMemoryStore(), now: () => 0, log: () => {} });
  return {
    gateway,
    record: gateway.observer.began({ id: "test", method: "GET" }, { log: () => {}, logged: "none", probes: true }),
    requestId: "r",
    params,
    caller: {
      keyId: "k",
      keyName: "k",
      groupName: "g",
      group: { ...groupSchema.parse({}), models, ...group },
      rules,
    },
    session: undefined,
    answerHeaders: [],
    head: new Headers(),
    info: undefined,
    clients: createClientTracker(gateway),
    timers: new PhaseTimers(),
    drain: createDrain(),
    readJson: () => Promise.resolve({ text: "{}", value: {}, members: [] }),
    body: NO_BODY,
  };
}

const REQUEST = ask("");

async function ids(response: Promise<Response>): Promise<string[]> {
  const { data } = await (await response).json();
  return data.map((model: { id: string }) => model.id);
}

Deno.test("listModels() uses the envelope of its format", async () => {
  const compatible = await (await listModels(REQUEST, context(), "compatible")).json();
  assertEquals([Object.keys(compatible), compatible.object, compatible.data[0].object], [
    ["object", "data"],
    "list",
    "model",
  ]);
  const native = await (await listModels(REQUEST, context(), "native")).json();
  assertEquals([Object.keys(native), native.data[0].type], [["data", "has_more", "first_id", "last_id"], "model"]);
});

Deno.test("listModels() shows the models of the group, and in the native format only those with text output", async () => {
  const cases: [string[], CatalogFormat, string[]][] = [
    [["*"], "compatible", [
      "acme/one",
      "acme/two",
      "acme/paint",
      "zeta/brush",
      "beta/b",
      "sluice/echo",
      "sluice/canvas",
      "sluice/embed",
      "sluice/rerank",
    ]],
    [["*"], "native", ["acme/one", "acme/two", "beta/b", "sluice/echo"]],
    [["acme/*"], "compatible", ["acme/one", "acme/two", "acme/paint"]],
    [["acme/*"], "native", ["acme/one", "acme/two"]],
    [[], "compatible", []],
  ];
  for (const [models, format, expected] of cases) {
    assertEquals(await ids(listModels(REQUEST, context({}, models), format)), expected);
  }
});

Deno.test("listModels() shows only models that the caller may call", async () => {
  const TEXT = ["acme/one", "acme/two", "beta/b", "sluice/echo"];
  const IMAGES = ["acme/paint", "zeta/brush", "sluice/canvas"];
  const cases: [Partial<Group>, KeyRules, compatible: string[], native: string[]][] = [
    [{}, { models: ["*/one", "zeta/*"] }, ["acme/one", "zeta/brush"], ["acme/one"]],
    [{ models: ["acme/*"] }, { models: ["*/one", "zeta/*"] }, ["acme/one"], ["acme/one"]],
    [{ endpoints: ["models", "images"] }, {}, IMAGES, []],
    [{ endpoints: ["models", "chat"] }, {}, TEXT, []],
    [{ endpoints: ["models", "messages"] }, {}, TEXT, TEXT],
    [{ protocols: ["responses"] }, { endpoints: ["models", "responses"] }, TEXT, []],
    [{ protocols: ["chat"] }, { endpoints: ["models", "responses"] }, [], []],
    [{}, { endpoints: ["models"] }, [], []],
  ];
  for (const [group, rules, compatible, native] of cases) {
    for (const [format, expected] of [["compatible", compatible], ["native", native]] as const) {
      const shown = await ids(listModels(REQUEST, context({}, ["*"], { group, rules }), format));
      assertEquals(shown.toSorted(), expected.toSorted(), `${format} ${JSON.stringify([group, rules])}`);
    }
  }
});

Deno.test("listVendor() shows one vendor's models", async () => {
  assertEquals(await ids(listVendor(REQUEST, context({ provider: "acme" }), "compatible")), [
    "acme/one",
    "acme/two",
    "acme/paint",
  ]);
  assertEquals(await ids(listVendor(REQUEST, context({ provider: "acme" }), "native")), ["acme/one", "acme/two"]);
});

Deno.test("listVendor() does not find a vendor without permitted models", async () => {
  const cases: [string, string[], CatalogFormat][] = [
    ["nobody", ["*"], "compatible"],
    ["constructor", ["*"], "compatible"],
    ["acme", ["beta/*"], "compatible"],
    ["zeta", ["*"], "native"],
  ];
  for (const [provider, models, format] of cases) {
    const error = await assertRejects(
      async () => await listVendor(REQUEST, context({ provider }, models), format),
      GatewayError,
      `No model, and no models of a vendor, have the name "${provider}"`,
    );
    // OpenAI's SDK retrieves a model whose name has no slash here.
    assertEquals([error.status, error.code], [404, "model_not_found"]);
  }
});

Deno.test("getModel() and an id with an escaped slash return the same model", async () => {
  for (const format of FORMATS) {
    const plain = await getModel(REQUEST, context({ provider: "acme", model_id: "one" }), format);
    const escaped = await listVendor(REQUEST, context({ provider: "acme/one" }), format);
    const body = await plain.json();
    assertEquals(await escaped.json(), body);
    assertEquals(body.id, "acme/one");
    assertEquals(body.targets, undefined);
  }
});

Deno.test("getModel() refuses a model that the caller may not use, and does not find what it cannot call", async () => {
  const missing = (id: string) => [404, "model_not_found", `Model "${id}" does not exist`] as const;
  const forbidden = (id: string) => [403, undefined, `This API key may not use model "${id}"`] as const;
  const cases: [Record<string, string>, string[], CatalogFormat, ReturnType<typeof missing | typeof forbidden>][] = [
    [{ provider: "acme", model_id: "none" }, ["*"], "compatible", missing("acme/none")],
    [{ provider: "acme", model_id: "one" }, ["beta/*"], "compatible", forbidden("acme/one")],
    // An unknown name says no more than a known one.
    [{ provider: "acme", model_id: "none" }, ["beta/*"], "compatible", forbidden("acme/none")],
    [{ provider: "acme/one" }, ["beta/*"], "native", forbidden("acme/one")],
    [{ provider: "acme", model_id: "paint" }, ["*"], "native", missing("acme/paint")],
    [{ provider: "acme", model_id: "one/more" }, ["*"], "native", missing("acme/one/more")],
  ];
  for (const [params, models, format, expected] of cases) {
    const act = params.model_id === undefined ? listVendor : getModel;
    const error = await assertRejects(async () => await act(REQUEST, context(params, models), format), GatewayError);
    assertEquals([error.status, error.code, error.message], [...expected]);
  }
});

function ask(query: string): Request {
  return new Request(`http://localhost/v1/models${query}`, { headers: { host: "localhost" } });
}

Deno.test("listModels() pages the native list", async () => {
  const [one, two, b, echo] = ["acme/one", "acme/two", "beta/b", "sluice/echo"];
  const cases: [query: string, ids: unknown[], hasMore: boolean][] = [
    ["", [one, two, b, echo], false],
    ["?limit=1000", [one, two, b, echo], false],
    ["?limit=4", [one, two, b, echo], false],
    ["?limit=3", [one, two, b], true],
    ["?lifecycle=active", [one, two, b, echo], false],
    ["?lifecycle%5B%5D=retired&lifecycle%5B%5D=active&limit=1", [one], true],
    ["?lifecycle[]=deprecated", [], false],
    ["?limit=1&after_id=acme%2Ftwo", [b], true],
    ["?after_id=acme/two", [b, echo], false],
    ["?limit=2&after_id=acme/two&beta=true", [b, echo], false],
    ["?after_id=sluice/echo", [], false],
    ["?limit=2&before_id=sluice/echo", [two, b], true],
    ["?limit=2&before_id=beta/b", [one, two], false],
    ["?before_id=acme/one", [], false],
  ];
  for (const [query, expected, hasMore] of cases) {
    const body = await (await listModels(ask(query), context(), "native")).json();
    const { data, ...page } = body;
    assertEquals(data.map((model: { id: string }) => model.id), expected, query);
    assertEquals(page, { has_more: hasMore, first_id: expected[0] ?? null, last_id: expected.at(-1) ?? null }, query);
  }
  const vendor = await (await listVendor(ask("?limit=1"), context({ provider: "acme" }), "native")).json();
  assertEquals([vendor.last_id, vendor.has_more], [one, true]);
});

Deno.test("listModels() rejects invalid pages of the native list", () => {
  const cases: [query: string, param: string][] = [
    ["?limit=0", "limit"],
    ["?limit=1001", "limit"],
    ["?limit=-1", "limit"],
    ["?limit=1.5", "limit"],
    ["?limit=", "limit"],
    ["?limit=many", "limit"],
    ["?after_id=acme/none", "after_id"],
    ["?after_id=", "after_id"],
    ["?before_id=acme/paint", "before_id"],
    ["?after_id=acme/one&before_id=beta/b", "before_id"],
  ];
  for (const [query, param] of cases) {
    const error = assertThrows(() => listModels(ask(query), context(), "native"), GatewayError);
    assertEquals([error.status, error.param], [400, param], query);
  }
  // The models of other callers are unknown here.
  const hidden = () => listModels(ask("?after_id=acme/one"), context({}, ["beta/*"]), "native");
  assertThrows(hidden, GatewayError, "No model in the list has this id");
});
