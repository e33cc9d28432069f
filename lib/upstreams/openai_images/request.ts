/** Writes requests in OpenAI's images API: JSON for generations, a form for edits. */
import type { Target } from "../../catalog/model.ts";
import type { ImageRequest, InputImage } from "../../images/types.ts";
import { type Json, type JsonObject, writeJson } from "../../json/mod.ts";
import type { Form, FormFile } from "./multipart.ts";

/** Parameters of one call. */
export interface ImageCallParameters {
  target: Target;
  n: number;
  stream: boolean;
}

/**
 * Writes the members of a request. Default values (`background: auto`) are left out, because smaller hosts reject
 * members that they do not know. Unknown members of the client are passed on, unless the gateway sets a member of the
 * same name.
 */
export function writeMembers(request: ImageRequest, { target, n, stream }: ImageCallParameters): JsonObject {
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

/** Writes a request as a form: one file is `image`, several are `image[]`. */
export function writeEdit(request: ImageRequest, parameters: ImageCallParameters): Form {
  const fields = Object.entries(writeMembers(request, parameters)).flatMap(([name, value]) => fieldsOf(name, value));
  const { images, mask } = request;
  const name = images.length === 1 ? "image" : "image[]";
  const files = images.map((image) => fileOf(name, image));
  if (mask !== undefined) files.push(fileOf("mask", mask));
  return { fields, files };
}

/** Returns a member as form fields. A list becomes several fields of one name. */
function fieldsOf(name: string, value: Json | undefined): [string, string][] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value.flatMap((item) => fieldsOf(name, item));
  return [[name, typeof value === "string" ? value : writeJson(value)]];
}

function fileOf(name: string, { type, bytes }: InputImage): FormFile {
  return { name, filename: `${name === "mask" ? "mask" : "image"}.${type}`, type: `image/${type}`, bytes };
}
