/** Google's SDK for JavaScript, `@google/genai`, over every way to the model. */
import { assert, assertEquals, assertGreater, assertMatch } from "@std/assert";
import { ApiError, type Content, FunctionCallingConfigMode, GoogleGenAI, type Part, Type } from "google-genai";
import { sharedConfigured } from "./configured.ts";
import type { Gateway } from "./gateway.ts";
import { caught } from "./sdks.ts";
import { ECHO, type Route, ROUTES, routesOfTest, sharedCrossing } from "./upstreams.ts";

const gateway = sharedCrossing();
const configured = sharedConfigured();

/** Registers a test for each way to the model. */
function crossGoogle(name: string, test: (ai: GoogleGenAI, route: Route) => Promise<void>): void {
  for (const route of routesOfTest()) {
    Deno.test(`@google/genai 3, ${route.model}: ${name}`, () => test(client(gateway(route)), route));
  }
}

function client({ url, key }: Pick<Gateway, "url" | "key">): GoogleGenAI {
  return new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url } });
}

const [EMBEDDED] = ROUTES;
assert(EMBEDDED !== undefined);
const WEATHER = {
  name: "get_weather",
  description: "Weather of a city",
  parametersJsonSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const CLOCK = { name: "clock", description: "The time", parametersJsonSchema: { type: "object", properties: {} } };
const TWO_CALLS = 'Both.\ncall:get_weather {"city":"Zürich"}\ncall:clock {}';
const PIXELS = "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAwCAYAAAChS3wfAAAAAElFTkSuQmCC";

crossGoogle("generateContent answers with a whole answer", async (ai, { model }) => {
  const answer = await ai.models.generateContent({
    model,
    contents: "Hello there, gateway",
    config: { systemInstruction: "Be brief.", maxOutputTokens: 100, temperature: 0.5 },
  });
  assertEquals(answer.text, "Hello there, gateway");
  assertEquals([answer.modelVersion, answer.candidates?.[0]?.finishReason], [model, "STOP"]);
  const { promptTokenCount = 0, candidatesTokenCount, totalTokenCount } = answer.usageMetadata ?? {};
  assertGreater(promptTokenCount, 4);
  assertEquals([candidatesTokenCount, totalTokenCount], [4, promptTokenCount + 4]);
});

crossGoogle("generateContentStream brings the same text in many pieces", async (ai, { model }) => {
  const stream = await ai.models.generateContentStream({ model, contents: "Hello there, gateway" });
  const pieces = await Array.fromAsync(stream);
  assertEquals(pieces.map(({ text }) => text).join(""), "Hello there, gateway");
  assertEquals(pieces.flatMap(({ candidates }) => candidates?.[0]?.finishReason ?? []), ["STOP"]);
  const last = pieces.at(-1);
  assertEquals([last?.modelVersion, last?.usageMetadata?.candidatesTokenCount], [model, 4]);
});

crossGoogle("a chat remembers streamed answers", async (ai, { model }) => {
  const chat = ai.chats.create({ model });
  for (const message of ["One two", "Three"]) {
    const pieces = await Array.fromAsync(await chat.sendMessageStream({ message }));
    assertEquals(pieces.map(({ text }) => text).join(""), message);
  }
  const received = chat.getHistory(true).filter(({ role }) => role === "model");
  assertEquals(received.flatMap(({ parts = [] }) => parts).map(({ text }) => text).join(""), "One twoThree");
});

/** The answer's content, put together from its pieces as Gemini CLI does. */
function contentOf(pieces: readonly { candidates?: { content?: Content }[] }[]): Content {
  const parts: Part[] = [];
  for (const part of pieces.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])) {
    const last = parts.at(-1);
    const isText = (part: Part | undefined) => typeof part?.text === "string" && part.thought !== true;
    if (last !== undefined && isText(last) && isText(part)) {
      last.text = `${last.text}${part.text}`;
      if (part.thoughtSignature !== undefined) last.thoughtSignature = part.thoughtSignature;
    } else parts.push({ ...part });
  }
  return { role: "model", parts };
}

for (const withIds of [true, false]) {
  crossGoogle(`a loop of parallel tools, results ${withIds ? "by id" : "by name and order"}`, async (ai, route) => {
    const { model } = route;
    const config = {
      tools: [{ functionDeclarations: [WEATHER, CLOCK] }],
      thinkingConfig: { includeThoughts: true, thinkingBudget: 1024 },
    };
    const question: Content = { role: "user", parts: [{ text: TWO_CALLS }] };
    const pieces = await Array.fromAsync(
      await ai.models.generateContentStream({ model, contents: [question], config }),
    );
    const calls = pieces.flatMap(({ functionCalls = [] }) => functionCalls);
    assertEquals(calls.map(({ name, args }) => [name, args]), [["get_weather", { city: "Zürich" }], ["clock", {}]]);
    // Without thoughts, as Gemini CLI sends the conversation back.
    const { parts = [] } = contentOf(pieces);
    const answer = { role: "model", parts: parts.filter(({ thought }) => thought !== true) };
    const results = calls.map(({ id, name }, index) => ({
      functionResponse: {
        ...(withIds && id !== undefined && { id }),
        name: name ?? "",
        response: { output: `r${index}` },
      },
    }));
    const last = await ai.models.generateContent({
      model,
      contents: [question, answer, { role: "user", parts: results }],
      config,
    });
    assertMatch(last.text ?? "", /r0[^]*r1/);
  });
}

crossGoogle("thoughts are shown on request only", async (ai, { model }) => {
  for (const includeThoughts of [true, false]) {
    const { candidates, usageMetadata } = await ai.models.generateContent({
      model,
      contents: "Hello",
      config: { thinkingConfig: { includeThoughts, thinkingBudget: 1024 } },
    });
    const thoughts = candidates?.[0]?.content?.parts?.filter(({ thought }) => thought === true) ?? [];
    assertEquals(thoughts.length > 0, includeThoughts);
    assertGreater(usageMetadata?.thoughtsTokenCount ?? 0, 0);
  }
});

crossGoogle("a schema gets JSON of its form", async (ai, { model }) => {
  const schema = { type: "object", properties: { name: { type: "string", enum: ["Oslo"] } }, required: ["name"] };
  const { text = "" } = await ai.models.generateContent({
    model,
    contents: "A city",
    config: { responseMimeType: "application/json", responseJsonSchema: schema },
  });
  assertEquals(JSON.parse(text), { name: "Oslo" });
});

crossGoogle("an image in the prompt is read", async (ai, { model }) => {
  const parts = [{ text: "See" }, { inlineData: { mimeType: "image/png", data: PIXELS } }];
  const { text } = await ai.models.generateContent({ model, contents: [{ role: "user", parts }] });
  assertMatch(text ?? "", /See[^]*image 64x48/);
});

crossGoogle("countTokens counts, and the catalog has the model", async (ai, { model }) => {
  const { totalTokens = 0 } = await ai.models.countTokens({ model, contents: "Hello there, gateway" });
  assertGreater(totalTokens, 3);
  const found = await ai.models.get({ model });
  assertEquals([found.name, found.supportedActions], [`models/${model}`, ["generateContent", "countTokens"]]);
  const names = (await Array.fromAsync(await ai.models.list({ config: { pageSize: 2 } }))).map(({ name }) => name);
  assert(names.includes(`models/${model}`) && new Set(names).size === names.length, names.join());
});

Deno.test("@google/genai 3: schemas in Google's form, a forced tool, and a stop sequence", async () => {
  const ai = client(gateway(EMBEDDED));
  const city = {
    name: "find",
    parameters: { type: Type.OBJECT, properties: { q: { type: Type.STRING } }, required: ["q"] },
  };
  const { functionCalls } = await ai.models.generateContent({
    model: ECHO,
    contents: "Hello",
    config: {
      tools: [{ functionDeclarations: [city, { name: "other" }] }],
      toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ["find"] } },
    },
  });
  assertEquals(functionCalls?.map(({ name, args }) => [name, args]), [["find", { q: "" }]]);
  const { text } = await ai.models.generateContent({
    model: ECHO,
    contents: "one two END three",
    config: { stopSequences: ["END"] },
  });
  assertEquals(text, "one two ");
});

Deno.test("@google/genai 3: errors are of its own class, with their status", async () => {
  const { url, key } = gateway(EMBEDDED);
  const ask = (apiKey: string, model: string) =>
    client({ url, key: apiKey }).models.generateContent({ model, contents: "x" });
  const cases: [string, string, number, RegExp][] = [
    [key, "no/such-model", 404, /does not exist/],
    ["wrong", ECHO, 401, /not valid/],
  ];
  for (const [apiKey, model, status, message] of cases) {
    const error = await caught(ApiError, ask(apiKey, model));
    assertEquals(error.status, status);
    assertMatch(error.message, message);
  }
});

// The SDK does not read the rest of a stream with an error.
const LEAKS = { sanitizeResources: false };

Deno.test("@google/genai 3: an error within a stream is thrown", LEAKS, async () => {
  const stream = await client(configured()).models.generateContentStream({
    model: "acme/fault",
    contents: "error-after:2",
  });
  const error = await caught(ApiError, Array.fromAsync(stream));
  assertGreater(error.status, 499);
});
