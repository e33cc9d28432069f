/** A request for images in OpenAI's words: JSON for new ones, a form for edits. */
import type { Target } from "../../catalog/model.ts";
import type { ImageRequest, InputImage } from "../../images/types.ts";
import { type Json, type JsonObject, writeJson } from "../../json/json.ts";
import type { Form, FormFile } from "./multipart.ts";

/** How a host is asked. */
export interface Asking {
  target: Target;
  /** How many images this one request is for. */
  n: number;
  stream: boolean;
}

/**
 * Members of a request. What the host would do anyway (`background: auto`) is left out, as smaller hosts do not know the
 * members for it. What the gateway does not read goes along unless a member of its own has that name.
 */
export function writeMembers(request: ImageRequest, { target, n, stream }: Asking): JsonObject {
  const { single, addresses, own_format: ownFormat } = target.images ?? {};
  return {
    ...request.rest,
    model: target.model,
    prompt: request.prompt,
    ...(single !== true && { n }),
    size: `${request.size.width}x${request.size.height}`,
    quality: request.quality,
    ...(ownFormat !== true && {
      output_format: request.format,
      ...(request.compression !== undefined && { output_compression: request.compression }),
    }),
    ...(request.background !== "auto" && { background: request.background }),
    ...(request.user !== undefined && { user: request.user }),
    ...(addresses === true && { response_format: "b64_json" }),
    ...(stream && { stream, ...(request.partialImages > 0 && { partial_images: request.partialImages }) }),
  };
}

/** The same as a form with the images: one is `image`, several are `image[]` each. */
export function writeEdit(request: ImageRequest, asking: Asking): Form {
  const fields = Object.entries(writeMembers(request, asking)).flatMap(([name, value]) => fieldsOf(name, value));
  const { images, mask } = request;
  const name = images.length === 1 ? "image" : "image[]";
  const files = images.map((image) => fileOf(name, image));
  if (mask !== undefined) files.push(fileOf("mask", mask));
  return { fields, files };
}

/** A field that came several times goes out several times. */
function fieldsOf(name: string, value: Json | undefined): [string, string][] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value.flatMap((item) => fieldsOf(name, item));
  return [[name, typeof value === "string" ? value : writeJson(value)]];
}

function fileOf(name: string, { type, bytes }: InputImage): FormFile {
  return { name, filename: `${name === "mask" ? "mask" : "image"}.${type}`, type: `image/${type}`, bytes };
}
