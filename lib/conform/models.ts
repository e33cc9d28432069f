/** Checks of the model list in both formats, and of the HTTP behaviour of all paths. */
import { z } from "zod";
import { isObject, type JsonObject } from "../json/mod.ts";
import { type Checks, expectThat, shaped, Skip } from "./check.ts";
import { checkError, checkHeader } from "./http_checks.ts";
import type { HttpAnswer, SuiteContext } from "./suite_context.ts";
import { BAD_KEY, NO_MODEL } from "./prompts.ts";
import { objectOf } from "./sse.ts";

/** An origin that no gateway allows. */
const FOREIGN_ORIGIN = "https://conform.invalid";

const modelForm = z.object({
  id: z.string().min(1),
  object: z.literal("model"),
  created: z.number().int().min(0),
  owned_by: z.string(),
});

const nativeForm = z.object({
  id: z.string().min(1),
  type: z.literal("model"),
  display_name: z.string().min(1),
  created_at: z.iso.datetime({ offset: true }),
});

/** Members beyond OpenAI's that many gateways show. If they are present, they must be well-formed. */
const richForm = z.object({
  context_length: z.number().int().min(1).nullish(),
  pricing: z.record(z.string(), z.unknown()).nullish(),
  supported_parameters: z.array(z.string()).nullish(),
  architecture: z.object({
    input_modalities: z.array(z.string()).nullish(),
    output_modalities: z.array(z.string()).nullish(),
  }).nullish(),
});

function getList(context: SuiteContext): Promise<HttpAnswer> {
  return context.once("models", () => context.good({ method: "GET", path: context.path("models") }));
}

async function getModels(context: SuiteContext): Promise<JsonObject[]> {
  const { data } = objectOf((await getList(context)).text, "the catalog");
  expectThat(Array.isArray(data), "data, a list", data);
  return data.filter(isObject);
}

function nativePath(context: SuiteContext): string {
  const path = context.path("messages").replace(/\/messages$/, "/models");
  if (path === context.path("models")) throw new Skip("the two formats would share one address");
  return path;
}

function getNativeList(context: SuiteContext): Promise<HttpAnswer> {
  return context.once("models native", async () => {
    const answer = await context.ask({ method: "GET", path: nativePath(context), credential: "x-api-key" });
    if (answer.status === 404) throw new Skip("the gateway has no catalog in the native format");
    expectThat(answer.status === 200, "status 200", `${answer.status}: ${answer.text}`);
    return answer;
  });
}

/** Checks of the model list. */
export const MODELS: Checks = {
  async list(context) {
    const body = objectOf((await getList(context)).text, "the catalog");
    expectThat(body.object === "list", 'object "list"', body.object);
    const models = await getModels(context);
    expectThat(models.length > 0, "models", "none");
    models.forEach((row, index) => shaped(modelForm, row, `data.${index}`));
  },
  async unique(context) {
    const ids = (await getModels(context)).map(({ id }) => id);
    const duplicate = ids.find((id, index) => ids.indexOf(id) !== index);
    expectThat(duplicate === undefined, "each id once", duplicate);
    const { model } = context.subject;
    expectThat(ids.includes(model), model, ids);
  },
  async rich(context) {
    const models = await getModels(context);
    for (const row of models) {
      const { pricing } = shaped(richForm, row, String(row.id));
      for (const [name, price] of Object.entries(pricing ?? {})) {
        const isNumber = typeof price !== "string" || /^-?\d+(\.\d+)?$/.test(price);
        expectThat(isNumber, `pricing.${name} as a decimal string`, price);
      }
    }
    if (models.every((row) => !("pricing" in row) && !("context_length" in row))) throw new Skip("none is shown");
  },
  async one(context) {
    const { model } = context.subject;
    const path = `${context.path("models")}/${encodeURIComponent(model)}`;
    const row = objectOf((await context.good({ method: "GET", path })).text, "the model");
    shaped(modelForm, row);
    expectThat(row.id === model, model, row.id);
  },
  async none(context) {
    const path = `${context.path("models")}/${encodeURIComponent(NO_MODEL)}`;
    checkError({ errors: "openai" }, await context.ask({ method: "GET", path }), [404]);
  },
  async key(context) {
    const answer = await context.ask({ method: "GET", path: context.path("models"), key: BAD_KEY });
    if (answer.status === 200) throw new Skip("the catalog needs no key");
    checkError({ errors: "openai" }, answer, [401]);
  },
  async native(context) {
    const body = objectOf((await getNativeList(context)).text, "the catalog");
    expectThat(Array.isArray(body.data) && body.data.length > 0, "data, a list", body.data);
    body.data.forEach((row, index) => shaped(nativeForm, row, `data.${index}`));
    const { has_more } = body;
    expectThat(has_more === undefined || typeof has_more === "boolean", "has_more, or none", has_more);
  },
  async native_one(context) {
    await getNativeList(context);
    const { model } = context.subject;
    const path = `${nativePath(context)}/${encodeURIComponent(model)}`;
    const answer = await context.good({ method: "GET", path, credential: "x-api-key" });
    expectThat(shaped(nativeForm, objectOf(answer.text, "the model")).id === model, model, answer.text);
  },
  type: async (context) => checkHeader(await getList(context), "content-type", /^application\/json\b/),
  request_id: async (context) => checkHeader(await getList(context), "x-request-id", /^\S+$/),
  async head(context) {
    const answer = await context.ask({ method: "HEAD", path: context.path("models") });
    expectThat(answer.status === 200, "status 200", answer.status);
    expectThat(answer.text === "", "no body", answer.text);
  },
  async method(context) {
    const answer = await context.ask({ method: "DELETE", path: context.path("models") });
    expectThat(answer.status === 405, "status 405", answer.status);
    checkHeader(answer, "allow", /\bGET\b/);
  },
  async cors(context) {
    const path = context.path("models");
    const answer = await context.ask({ method: "GET", path, headers: { origin: FOREIGN_ORIGIN } });
    const allowed = answer.header("access-control-allow-origin");
    expectThat(allowed !== "*" && allowed !== FOREIGN_ORIGIN, "no access-control-allow-origin for it", allowed);
  },
  async path(context) {
    const path = `${context.path("models").replace(/\/models$/, "")}/conform/nothing`;
    checkError({ errors: "openai" }, await context.ask({ method: "GET", path }), [404]);
  },
};
