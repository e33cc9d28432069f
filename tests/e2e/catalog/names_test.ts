import { assert, assertEquals, assertMatch } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { formOf, painter, paintsAll } from "../images/gateway.ts";
import { png } from "../../images/image_files.ts";
import { model, startGateway, type TestGateway, type TestKey, upstream, VENDORS } from "../../support/gateway.ts";
import { prompt, PROTOCOLS, STREAMED, WHOLE } from "../../upstream/replies.ts";
import { events, json, startUpstream } from "../../upstream/mod.ts";

const ECHO = [{ upstream: "embedded", model: "echo" }];

const MODELS = [
  model("openai/gpt-5", ECHO, { canonical_slug: "openai/gpt-5-2025-08-07", aliases: ["gpt-latest", "acme/fast"] }),
  model("openai/old", ECHO, { expiration_date: "2026-03-01", aliases: ["elder"] }),
  model("acme/twin", ECHO),
  model("beta/twin", ECHO),
  model("acme/paint", [{ upstream: "embedded", model: "canvas" }], {
    canonical_slug: "acme/paint-1",
    aliases: ["painter"],
    architecture: { input_modalities: ["text", "image"], output_modalities: ["image"] },
    reasoning: undefined,
    supported_parameters: undefined,
  }),
];

/** A millisecond before the day of `expiration_date`, in UTC. */
const BEFORE = Date.UTC(2026, 2, 1) - 1;

function start(now: () => number = () => BEFORE): TestGateway {
  return startGateway({ models: MODELS, groups: { openai: { models: ["openai/*"] }, acme: { models: ["acme/*"] } } }, {
    now,
  });
}

/** The message of an error. In the messages protocol, the parameter is at the start of the message. */
function messageOf({ error }: { error?: { message: string } }): string {
  return (error?.message ?? "").replace(/^model: /, "");
}

/** Status and message of requests for a model in every protocol, and of a token count. */
async function statusesOf(
  gateway: TestGateway,
  name: string,
  key: TestKey = gateway.key,
): Promise<[status: number, message: string][]> {
  const answers: Response[] = [];
  for (const protocol of PROTOCOLS) {
    answers.push(await gateway.ask(protocol, prompt(protocol, { model: name }), { key }));
  }
  answers.push(
    await fetch(`${gateway.url}/anthropic/v1/messages/count_tokens`, {
      method: "POST",
      headers: { "x-api-key": key.key, "anthropic-version": "2023-06-01", "content-type": "application/json" },
      body: JSON.stringify({ model: name, messages: [{ role: "user", content: "Hello" }] }),
    }),
  );
  return await Promise.all(answers.map(async (answer): Promise<[number, string]> => {
    const body = await answer.json();
    return [answer.status, messageOf(body) || (body.model ?? body.modelVersion ?? "")];
  }));
}

/** The same from every protocol, and from the token count. */
function all<T>(answer: T): T[] {
  return [...PROTOCOLS, "count"].map(() => answer);
}

/** An answer of the catalog: a list, a model or an error. */
type Shown = JsonObject & { data?: JsonObject[]; error?: { message: string } };

/** The catalog's answer to a path below `/v1/models`, or to one of the native format. */
async function look(
  gateway: TestGateway,
  path: string,
  { key = gateway.key, etag }: { key?: TestKey; etag?: string } = {},
): Promise<{ status: number; etag: string; body: Shown }> {
  const response = await fetch(`${gateway.url}${path}`, {
    headers: {
      ...(path.startsWith("/anthropic") ? { "x-api-key": key.key } : { authorization: `Bearer ${key.key}` }),
      ...(etag !== undefined && { "if-none-match": etag }),
    },
  });
  const text = await response.text();
  return {
    status: response.status,
    etag: response.headers.get("etag") ?? "",
    body: text === "" ? {} : JSON.parse(text),
  };
}

Deno.test("a model can be requested by canonical slug and aliases, and answers contain its id", async () => {
  await using gateway = start();
  for (const name of ["openai/gpt-5", "openai/gpt-5-2025-08-07", "gpt-latest", "acme/fast"]) {
    const answers = await statusesOf(gateway, name);
    assertEquals(answers, [...PROTOCOLS.map((): [number, string] => [200, "openai/gpt-5"]), [200, ""]], name);
    for (const path of ["/v1/models", "/anthropic/v1/models"]) {
      const { status, body } = await look(gateway, `${path}/${name}`);
      assertEquals([status, body.id], [200, "openai/gpt-5"], `${path}/${name}`);
    }
  }
  const entries = await gateway.store.ledger.entries({ after: 0, limit: 100 });
  assertEquals(new Set(entries.map(({ model }) => model)), new Set(["openai/gpt-5"]));
});

Deno.test("an upstream gets its own model name, and answers contain the public id", async () => {
  for (const protocol of PROTOCOLS) {
    for (const stream of [false, true]) {
      await using server = startUpstream(() => stream ? events(STREAMED[protocol].join("")) : json(WHOLE[protocol]));
      await using gateway = startGateway({
        upstreams: { one: upstream(VENDORS[protocol], server.url) },
        models: [model("acme/one", [{ upstream: "one", model: "real-one", protocol }], { aliases: ["uno"] })],
      });
      const answer = await gateway.ask(protocol, prompt(protocol, { model: "uno", stream }));
      const text = await answer.text();
      assertEquals(answer.status, 200, text);
      assertMatch(text, /"model(?:Version)?":"acme\/one"/);
      assert(!text.includes("real-one") && !text.includes("uno"), text);
      const { path = "", body = "" } = server.requests[0] ?? {};
      assertMatch(protocol === "gemini" ? path : body, protocol === "gemini" ? /\/real-one:/ : /"model":"real-one"/);
    }
  }
});

Deno.test("an image model can be requested by its other names at both endpoints", async () => {
  await using gateway = startGateway({ models: MODELS }, { painters: { embedded: painter(paintsAll) } });
  const authorization = `Bearer ${gateway.key.key}`;
  for (const name of ["acme/paint", "acme/paint-1", "painter"]) {
    const generated = await fetch(`${gateway.url}/v1/images/generations`, {
      method: "POST",
      headers: { authorization, "content-type": "application/json" },
      body: JSON.stringify({ model: name, prompt: "Blue", quality: "low", size: "1024x640" }),
    });
    assertEquals([generated.status, (await generated.json()).model], [200, "acme/paint"], name);
  }
  const edited = await fetch(`${gateway.url}/v1/images/edits`, {
    method: "POST",
    headers: { authorization },
    body: formOf({ model: "painter" }, [["image", png(1024, 1024)]]),
  });
  assertEquals([edited.status, (await edited.json()).model], [200, "acme/paint"]);
});

Deno.test("permissions depend on the model, not on the name that a request uses", async () => {
  await using gateway = start();
  const openai = await gateway.addKey({ group: "openai" });
  const acme = await gateway.addKey({ group: "acme" });
  const narrowed = await gateway.addKey({ rules: { models: ["gpt-latest"] } });
  // The alias acme/fast is a name of openai/gpt-5.
  assertEquals((await statusesOf(gateway, "acme/fast", openai)).map(([status]) => status), all(200));
  for (const [name, key] of [["acme/fast", acme], ["gpt-latest", acme], ["gpt-latest", narrowed]] as const) {
    const refusal: [number, string] = [403, `This API key may not use model "${name}"`];
    assertEquals(await statusesOf(gateway, name, key), all(refusal));
    // A path with one part names a vendor.
    assertEquals((await look(gateway, `/v1/models/${name}`, { key })).status, name.includes("/") ? 403 : 404);
  }
});

Deno.test("an id without its vendor is 404 with the full id if the key may use one such model", async () => {
  await using gateway = start();
  const openai = await gateway.addKey({ group: "openai" });
  const acme = await gateway.addKey({ group: "acme" });
  const meant: [number, string] = [404, 'Model "gpt-5" does not exist; did you mean openai/gpt-5?'];
  for (const key of [gateway.key, openai]) {
    assertEquals(await statusesOf(gateway, "gpt-5", key), all(meant));
    for (const path of ["/v1/models", "/anthropic/v1/models"]) {
      const { status, body } = await look(gateway, `${path}/gpt-5`, { key });
      assertEquals([status, messageOf(body)], meant, path);
    }
  }
  const [unknown] = await statusesOf(gateway, "gpt-5", acme);
  assertEquals(unknown, [403, 'This API key may not use model "gpt-5"']);
  assertEquals(
    messageOf((await look(gateway, "/v1/models/gpt-5", { key: acme })).body),
    'No model, and no models of a vendor, have the name "gpt-5"',
  );
  // Two ids end that way, so the name is ambiguous. For the other key there is only one.
  assertEquals((await statusesOf(gateway, "twin"))[0], [404, 'Model "twin" does not exist']);
  assertEquals((await statusesOf(gateway, "twin", acme))[0], [
    404,
    'Model "twin" does not exist; did you mean acme/twin?',
  ]);
});

Deno.test("a model disappears on its expiration date: not listed, served or suggested", async () => {
  let now = BEFORE;
  await using gateway = start(() => now);
  const acme = await gateway.addKey({ group: "acme" });
  const paths = ["/v1/models", "/anthropic/v1/models", "/v1/models/openai"];
  const listed = async (path: string): Promise<boolean> =>
    ((await look(gateway, path)).body.data ?? []).some(({ id }) => id === "openai/old");
  const etags = new Map<string, string>();
  for (const path of paths) {
    assert(await listed(path), path);
    const { etag } = await look(gateway, path);
    assertEquals((await look(gateway, path, { etag })).status, 304);
    etags.set(path, etag);
  }
  for (const name of ["openai/old", "elder"]) {
    assertEquals((await statusesOf(gateway, name)).map(([status]) => status), all(200), name);
  }

  now++;
  for (const path of paths) {
    assert(!await listed(path), path);
    assertEquals((await look(gateway, path, { etag: etags.get(path) ?? "" })).status, 200, path);
  }
  for (const name of ["openai/old", "elder"]) {
    const gone: [number, string] = [404, `Model "${name}" expired on 2026-03-01`];
    assertEquals(await statusesOf(gateway, name), all(gone));
    const { status, body } = await look(gateway, `/v1/models/${name}`);
    assertEquals([status, messageOf(body)], gone);
    assertEquals((await statusesOf(gateway, name, acme))[0]?.[0], 403);
  }
  assertEquals((await statusesOf(gateway, "old"))[0], [404, 'Model "old" does not exist']);
});

Deno.test("a model named twice among fallbacks is tried once", async () => {
  await using server = startUpstream(() => json({ error: { message: "broken" } }, { status: 500 }));
  await using gateway = startGateway({
    upstreams: { one: upstream("openai-compatible", server.url) },
    models: [model("acme/one", [{ upstream: "one", model: "real-one" }], { aliases: ["uno"] })],
  });
  const answer = await gateway.ask("chat", prompt("chat", { model: "uno", models: ["acme/one", "uno"] }));
  await answer.body?.cancel();
  assertEquals([answer.status, server.requests.length], [502, 1]);
});
