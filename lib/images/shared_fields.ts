/** The parameters that generations and edits share: their schema, defaults and conversion. */
import { z } from "zod";
import { GatewayError } from "../errors.ts";
import type { JsonObject } from "../json/mod.ts";
import { usualName } from "../protocols/extras.ts";
import { checkBody } from "../protocols/fields.ts";
import { IMAGE_FORMATS, type ImageRequest } from "./types.ts";

/** Longest prompt, in characters. */
const MAX_PROMPT_CHARS = 32_000;

/** Maximum number of images of one request. */
const MAX_IMAGES = 10;

/** The operator's defaults. */
export interface ImageDefaults {
  /** Default quality; absent: requests without one are refused. */
  quality: string | undefined;
}

/** Fields of both endpoints. `null` means absent if a default exists. */
export const sharedFields = {
  model: z.string().min(1).max(256).describe("Id of an image model"),
  prompt: z.string().min(1).refine(isShort, { error: `Expected at most ${MAX_PROMPT_CHARS} characters` })
    .describe(`Description of the image, at most ${MAX_PROMPT_CHARS} characters`),
  n: z.number().int().min(1).max(MAX_IMAGES).nullish().describe("Number of images. Default: 1"),
  size: z.string().nullish().describe("`<width>x<height>` or `auto`. Default: auto"),
  output_format: z.enum(IMAGE_FORMATS).nullish().describe("Default: png"),
  output_compression: z.number().int().min(0).max(100).nullish().describe(
    "Quality of JPEG and WebP images, in percent",
  ),
  background: z.enum(["opaque", "auto"], {
    error: ({ input }) =>
      `Expected "opaque" or "auto"${input === "transparent" ? '; "transparent" is unsupported' : ""}`,
  }).nullish().describe("Default: auto"),
  moderation: z.enum(["auto", "low"]).nullish(),
  response_format: z.literal("b64_json", {
    error: 'Expected "b64_json": images are returned as base64, URLs are not supported',
  }).nullish(),
  stream: z.boolean().nullish().describe("Whether to stream the answer as server-sent events. Default: false"),
  partial_images: z.number().int().min(0).max(3).nullish().describe(
    "Number of previews per image in a stream. Default: 0",
  ),
  user: z.string().nullish(),
};

const modelSchema = z.looseObject({ model: sharedFields.model });
const sharedSchema = z.looseObject(sharedFields);

/** Validated values of the shared fields. */
export type SharedBody = z.output<typeof sharedSchema> & { quality?: string | null };

/** Members that the gateway reads. All others go to `rest`, except spellings of these that differ only in case. */
const READ_MEMBERS: ReadonlySet<string> = new Set(
  `model prompt quality n size output_format output_compression background response_format stream partial_images user`
    .split(/\s+/),
);

/**
 * Checks only the model id. It is checked first, because the error for an unknown or unsuitable model is more useful.
 * @throws {GatewayError} `invalid`
 */
export function checkModelId(model: unknown): string {
  checkBody(modelSchema, { model: typeof model === "string" || model === undefined ? model : null });
  return String(model);
}

/** Converts the shared fields, except sizes. @throws {GatewayError} `invalid` for rules beyond the schema */
export function readShared(
  body: SharedBody,
  { quality: fallback }: ImageDefaults,
): Omit<ImageRequest, "kind" | "requestedSize" | "size" | "images" | "mask"> {
  const quality = body.quality ?? fallback;
  if (quality === undefined) {
    throw new GatewayError("invalid", 'Missing required parameter: quality, such as "high"', {
      param: "quality",
      code: "missing_required_parameter",
    });
  }
  const stream = body.stream ?? false;
  const partialImages = body.partial_images ?? 0;
  if (partialImages > 0 && !stream) {
    throw new GatewayError("invalid", "Partial images require stream: true", { param: "partial_images" });
  }
  return {
    model: body.model,
    // A lone surrogate has no UTF-8 form, so it can be neither counted nor sent.
    prompt: body.prompt.toWellFormed(),
    quality,
    n: body.n ?? 1,
    format: body.output_format ?? "png",
    ...(typeof body.output_compression === "number" && { compression: body.output_compression }),
    background: body.background ?? "auto",
    stream,
    partialImages,
    ...(typeof body.user === "string" && { user: body.user }),
    rest: restOf(body),
  };
}

function restOf(body: SharedBody): JsonObject {
  return Object.fromEntries(
    Object.entries(body as JsonObject).filter(([name, value]) => !READ_MEMBERS.has(usualName(name)) && value !== null),
  );
}

/** Returns whether a prompt is short enough. A surrogate pair counts as one character. */
function isShort(text: string): boolean {
  if (text.length <= MAX_PROMPT_CHARS) return true;
  return text.length <= 2 * MAX_PROMPT_CHARS && [...text].length <= MAX_PROMPT_CHARS;
}
