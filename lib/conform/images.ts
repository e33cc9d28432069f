/** Pictures: made, edited, and streamed. Each costs what a picture costs, so there are three. */
import { z } from "zod";
import type { JsonObject } from "../json/mod.ts";
import { type Check, must, shaped, show, Skip } from "./check.ts";
import { checkError, checkHeader } from "./common.ts";
import type { Answer, Context } from "./context.ts";
import { BAD_KEY, NO_MODEL, PICTURE } from "./words.ts";
import { bodiesOf, objectOf } from "./wire.ts";

const WORDS = "A plain red circle on a white ground";
const SIZE = "1024x1024";

const count = z.number().int().min(0);

const usageForm = z.object({
  input_tokens: count,
  output_tokens: count.min(1),
  total_tokens: count,
  input_tokens_details: z.object({ text_tokens: count }).nullish(),
});

const resultForm = z.object({
  created: z.number().int().min(1_000_000_000).max(9_999_999_999),
  data: z.array(z.object({ b64_json: z.string().min(1) })).min(1),
});

function body(context: Context, more: JsonObject = {}): JsonObject {
  const { imageModel } = context.subject;
  if (imageModel === undefined) throw new Skip("no --image-model was given");
  return { model: imageModel, prompt: WORDS, size: SIZE, quality: "low", n: 1, ...more };
}

function made(context: Context): Promise<Answer> {
  return context.once("images whole", () => context.good({ path: context.path("images"), body: body(context) }));
}

/** Fails unless the base64 holds a PNG, JPEG or WebP. */
function checkPicture(base64: string): void {
  const head = /^[A-Za-z0-9+/]{24,}={0,2}$/.test(base64) ? atob(base64.slice(0, 24)) : "";
  const isPicture = head.startsWith("\x89PNG") || head.startsWith("\xff\xd8\xff") || head.slice(8, 12) === "WEBP";
  must(isPicture, { expected: "a PNG, JPEG or WebP in base64", seen: base64.slice(0, 24) });
}

function checkUsage(value: unknown): void {
  must(value !== undefined, { expected: "usage", seen: value });
  const { input_tokens, output_tokens, total_tokens } = shaped(usageForm, value, "usage");
  must(total_tokens === input_tokens + output_tokens, { expected: "total = input + output", seen: value });
}

/** Checks of pictures. */
export const IMAGES_CHECKS: readonly Check[] = [
  {
    id: "images.whole",
    part: "images",
    title: "A picture is made, and comes in base64",
    why: "SDKs read data[0].b64_json without looking",
    async run(context) {
      const { data } = shaped(resultForm, objectOf((await made(context)).text, "the answer"));
      checkPicture(data[0]?.b64_json ?? "");
    },
  },
  {
    id: "images.usage",
    part: "images",
    title: "A picture tells its usage, and the numbers fit together",
    why: "Bills are made of them",
    run: async (context) => checkUsage(objectOf((await made(context)).text, "the answer").usage),
  },
  {
    id: "images.request_id",
    part: "images",
    title: "A picture has the header x-request-id",
    why: "Nobody can look for a request in a log without its id",
    run: async (context) => checkHeader(await made(context), "x-request-id", /^\S+$/),
  },
  {
    id: "images.stream",
    part: "images",
    title: "A streamed picture ends with image_generation.completed, with picture and usage",
    why: "Clients wait for it",
    async run(context) {
      const ask = { path: context.path("images"), body: body(context, { stream: true, partial_images: 0 }) };
      const stream = await context.stream(ask);
      checkHeader(stream.answer, "content-type", /^text\/event-stream\b/);
      must(stream.faults.length === 0, { expected: "none of these", seen: stream.faults });
      const events = bodiesOf(stream);
      const { type, b64_json, usage } = events.at(-1) ?? {};
      must(type === "image_generation.completed", { expected: "image_generation.completed", seen: type });
      must(stream.events[events.length - 1]?.name === type, {
        expected: `event: ${type}`,
        seen: stream.events.at(-1)?.name,
      });
      checkPicture(String(b64_json));
      checkUsage(usage);
    },
  },
  {
    id: "images.edit",
    part: "images",
    title: "A picture is edited: multipart/form-data with a file",
    why: "This is how SDKs send it",
    async run(context) {
      const form = new FormData();
      for (const [name, value] of Object.entries(body(context, { prompt: "Make it blue" }))) {
        form.append(name, String(value));
      }
      const bytes = Uint8Array.from(atob(PICTURE), (char) => char.charCodeAt(0));
      form.append("image", new File([bytes], "square.png", { type: "image/png" }));
      const path = context.path("images").replace(/generations$/, "edits");
      const answer = await context.ask({ path, body: form });
      if (answer.status === 404) throw new Skip("the gateway does not edit pictures: 404");
      must(answer.status === 200, { expected: "status 200", seen: `${answer.status}: ${show(answer.text)}` });
      checkPicture(shaped(resultForm, objectOf(answer.text, "the answer")).data[0]?.b64_json ?? "");
    },
  },
  ...([
    ["images.error.key", "A wrong key is 401", { key: BAD_KEY }, {}, [401]],
    ["images.error.model", "A model that does not exist is 404 (or 400)", {}, { model: NO_MODEL }, [404, 400]],
    ["images.error.size", "A size that no model has is 400", {}, { size: "7x7" }, [400]],
  ] as const).map(([id, title, ask, more, statuses]): Check => ({
    id,
    part: "images",
    title: `${title}, in OpenAI's form`,
    why: "Anything else is retried, and may be paid for",
    async run(context) {
      const answer = await context.ask({ path: context.path("images"), body: body(context, more), ...ask });
      checkError({ errors: "openai" }, answer, [...statuses]);
    },
  })),
];
