/** Reads the JSON body of a generation into an `ImageRequest`. */
import { z } from "zod";
import type { JsonObject } from "../json/mod.ts";
import { checkBody } from "../protocols/fields.ts";
import { type ImageDefaults, readShared, type SharedBody, sharedFields } from "./shared_fields.ts";
import { DEFAULT_SIZE, readSize } from "./size.ts";
import type { ImageRequest } from "./types.ts";

/** Body of `POST /v1/images/generations`. Unknown members are allowed. */
export const generationSchema = z.looseObject({
  ...sharedFields,
  quality: z.enum(["auto", "low", "medium", "high"]).nullish()
    .describe("Required unless the operator has set a default. Does not affect the price"),
  style: z.enum(["vivid", "natural"]).nullish(),
});

/** Reads the body of a generation. @throws {GatewayError} `invalid` */
export function readGeneration(body: JsonObject, defaults: ImageDefaults): ImageRequest {
  checkBody(generationSchema, body);
  const fields = body as unknown as SharedBody;
  const requestedSize = fields.size ?? "auto";
  return {
    kind: "generation",
    ...readShared(fields, defaults),
    requestedSize,
    size: readSize(requestedSize) ?? { ...DEFAULT_SIZE },
    images: [],
  };
}
