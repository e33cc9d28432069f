import { assert, assertEquals, assertMatch } from "@std/assert";
import type { JsonObject } from "../../lib/json/mod.ts";
import { inFolder, reuseProcess, run } from "../support/program.ts";
import { plainModel } from "../support/plain_model.ts";

reuseProcess();

const BODIES: Readonly<Record<string, JsonObject>> = {
  chat: { model: "acme/one", seed: 5, messages: [{ role: "user", content: "Hello" }] },
  responses: { model: "acme/one", instructions: "Be kind", input: "Hello" },
  messages: { model: "acme/one", max_tokens: 100, top_k: 4, messages: [{ role: "user", content: "Hello" }] },
};

/** Members by which a body shows its protocol. */
const SHOWS: Readonly<Record<string, string>> = {
  chat: "messages",
  responses: "input",
  messages: "max_tokens",
  gemini: "contents",
};

Deno.test("translate prints the upstream's body and the dropped parameters for every pair of protocols", async () => {
  await inFolder(async (folder) => {
    const pairs = Object.keys(BODIES).flatMap((from) => Object.keys(SHOWS).map((to): [string, string] => [from, to]));
    for (const [from, to] of pairs) {
      const input = JSON.stringify(BODIES[from]);
      const { code, out, err } = await run(["translate", "--from", from, "--to", to], { folder, input });
      assertEquals(code, 0, `${from} to ${to}: ${err}`);
      const body: JsonObject = JSON.parse(out);
      assert(SHOWS[to] !== undefined && SHOWS[to] in body, `${from} to ${to}: ${out}`);
      assert(out.includes("Hello") && out.endsWith("}\n"), out);
      if (to !== "gemini") assertEquals(body.model, "acme/one");
      if (from === "chat" && (to === "responses" || to === "messages")) assertEquals(err, "dropped: seed\n");
      else if (from === "messages" && to === "responses") assertEquals(err, "dropped: top_k\n");
    }
  });
});

Deno.test("translate writes a body for a vendor and a catalog model", async () => {
  await inFolder(async (folder) => {
    const config = {
      upstreams: { local: { vendor: "ollama" } },
      models: [plainModel({
        supported_parameters: ["seed", "max_tokens"],
        targets: [{ upstream: "local", model: "real-one" }],
      })],
    };
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(config));
    const input = JSON.stringify({ ...BODIES.chat, user: "u", reasoning_effort: "high" });
    const { code, out, err } = await run(["translate", "--from", "chat", "--to", "chat", "--vendor", "mistral"], {
      folder,
      input,
    });
    assertEquals(code, 0, err);
    const body: JsonObject = JSON.parse(out);
    assertEquals([body.model, body.random_seed, body.user], ["real-one", 5, undefined]);
    assertMatch(err, /^dropped: (reasoning_effort, user|user, reasoning_effort)\n$/);
  });
});

Deno.test("translate reports an error in one line, and prints nothing else", async () => {
  const chat = JSON.stringify(BODIES.chat);
  const cases: [args: string[], input: string, err: RegExp, code?: number][] = [
    [["--from", "soap", "--to", "chat"], chat, /^Unknown protocol "soap" of --from; known: chat, /, 2],
    [["--from", "constructor", "--to", "chat"], chat, /^Unknown protocol "constructor"/, 2],
    [
      ["--from", "chat", "--to", "soap"],
      chat,
      /^Unknown protocol "soap" of --to; known: chat, responses, messages, gemini; /,
      2,
    ],
    [["--from", "chat"], chat, /^Unknown protocol "" of --to; known: chat, /, 2],
    [
      ["--from", "chat", "--to", "chat", "--vendor", "acme"],
      chat,
      /^Unknown vendor "acme"; known: openai, anthropic/,
      2,
    ],
    [
      ["--from", "chat", "--to", "messages", "--vendor", "openai"],
      chat,
      /^Vendor "openai" does not support protocol "messages"; it supports: responses, chat; see "sluice help"\n$/,
      2,
    ],
    [["--from", "chat", "--to", "chat"], "", /^400: Cannot read the body/],
    [["--from", "chat", "--to", "chat"], "[1]", /^400: Cannot read the body: expected a JSON object\n$/],
    [
      ["--from", "chat", "--to", "chat"],
      '{"model":',
      /^400: Cannot read the body as JSON: .* at position \d+ \(line 1, column \d+\)\n$/,
    ],
    [["--from", "chat", "--to", "chat"], '{"model":"acme/one"}', /^400: .*messages/],
    [
      ["--from", "messages", "--to", "chat"],
      JSON.stringify({ ...BODIES.messages, provider: { require_parameters: true }, mcp_servers: [{ type: "url" }] }),
      /^400: /,
    ],
  ];
  await inFolder(async (folder) => {
    for (const [args, input, wanted, expected = 1] of cases) {
      const { code, out, err } = await run(["translate", ...args], { folder, input });
      assertEquals([code, out], [expected, ""], args.join(" "));
      assertMatch(err, wanted);
    }
  });
});

Deno.test("translate validates bodies as the gateway does", async () => {
  await inFolder(async (folder) => {
    const messages = '[{"role":"user","content":"Hello"}]';
    const good = `\ufeff{"model":"acme/one","temperature":1.0,"max_tokens":1e2,"messages":${messages}}`;
    const { code, out, err } = await run(["translate", "--from", "chat", "--to", "messages"], { folder, input: good });
    assertEquals([code, err], [0, ""]);
    assertEquals([JSON.parse(out).temperature, JSON.parse(out).max_tokens], [1, 100]);
    const bad = `{"model":"acme/one",\n"messages":[}`;
    const refused = await run(["translate", "--from", "chat", "--to", "messages"], { folder, input: bad });
    assertEquals(refused.code, 1);
    assertMatch(refused.err, /^400: Cannot read the body as JSON: .* at position \d+ \(line 2, column 13\)\n$/);
  });
});

Deno.test("translate names dropped parameters in the client's terms", async () => {
  await inFolder(async (folder) => {
    const cases: [from: string, more: JsonObject, lost: string][] = [
      ["messages", { metadata: { user_id: "u-1" } }, "metadata.user_id"],
      ["chat", { user: "u-1" }, "user"],
      ["responses", { text: { verbosity: "low" } }, "text.verbosity"],
    ];
    for (const [from, more, lost] of cases) {
      const { seed: _, top_k: __, ...body } = BODIES[from] ?? {};
      const input = JSON.stringify({ ...body, ...more });
      const { code, err } = await run(["translate", "--from", from, "--to", "chat", "--vendor", "mistral"], {
        folder,
        input,
      });
      assertEquals([code, err], [0, `dropped: ${lost}\n`], from);
    }
  });
});
