/** Checks of images: generated, edited and streamed. Only three requests make images, because images are expensive. */
import { z } from "zod";
import { type Checks, expectThat, shaped, show, Skip } from "./check.ts";
import { checkHeader } from "./http_checks.ts";
import { answerOf, bodyOf, type ModelPart, refusalChecks } from "./model_part.ts";
import { PICTURE } from "./prompts.ts";
import { bodiesOf, objectOf } from "./sse.ts";

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

const FORM: ModelPart = {
  part: "images",
  model: "image",
  members: { prompt: "A plain red circle on a white ground", size: "1024x1024", quality: "low", n: 1 },
};

/** Checks that base64 contains a PNG, JPEG or WebP. */
function checkImage(base64: string): void {
  const head = /^[A-Za-z0-9+/]{24,}={0,2}$/.test(base64) ? atob(base64.slice(0, 24)) : "";
  const isImage = head.startsWith("\x89PNG") || head.startsWith("\xff\xd8\xff") || head.slice(8, 12) === "WEBP";
  expectThat(isImage, "a PNG, JPEG or WebP in base64", base64.slice(0, 24));
}

function checkUsage(value: unknown): void {
  expectThat(value !== undefined, "usage", value);
  const { input_tokens, output_tokens, total_tokens } = shaped(usageForm, value, "usage");
  expectThat(total_tokens === input_tokens + output_tokens, "total = input + output", value);
}

/** Checks of images. */
export const IMAGES: Checks = {
  async whole(context) {
    const { data } = shaped(resultForm, objectOf((await answerOf(FORM, context)).text, "the answer"));
    checkImage(data[0]?.b64_json ?? "");
  },
  usage: async (context) => checkUsage(objectOf((await answerOf(FORM, context)).text, "the answer").usage),
  request_id: async (context) => checkHeader(await answerOf(FORM, context), "x-request-id", /^\S+$/),
  async stream(context) {
    const body = bodyOf(FORM, context, { stream: true, partial_images: 0 });
    const stream = await context.stream({ path: context.path("images"), body });
    checkHeader(stream.answer, "content-type", /^text\/event-stream\b/);
    expectThat(stream.faults.length === 0, "a valid event stream", stream.faults);
    const events = bodiesOf(stream);
    const { type, b64_json, usage } = events.at(-1) ?? {};
    expectThat(type === "image_generation.completed", "image_generation.completed", type);
    expectThat(stream.events[events.length - 1]?.name === type, `event: ${type}`, stream.events.at(-1)?.name);
    checkImage(String(b64_json));
    checkUsage(usage);
  },
  async edit(context) {
    const form = new FormData();
    for (const [name, value] of Object.entries(bodyOf(FORM, context, { prompt: "Make it blue" }))) {
      form.append(name, String(value));
    }
    const bytes = Uint8Array.from(atob(PICTURE), (char) => char.charCodeAt(0));
    form.append("image", new File([bytes], "square.png", { type: "image/png" }));
    const path = context.path("images").replace(/generations$/, "edits");
    const answer = await context.ask({ path, body: form });
    if (answer.status === 404) throw new Skip("the gateway does not edit pictures: 404");
    expectThat(answer.status === 200, "status 200", `${answer.status}: ${show(answer.text)}`);
    checkImage(shaped(resultForm, objectOf(answer.text, "the answer")).data[0]?.b64_json ?? "");
  },
  ...refusalChecks(FORM, { "error.size": [() => ({ size: "7x7" }), [400]] }),
};
