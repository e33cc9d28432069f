import { z } from "zod";

/** A prompt-cache mark, an extension of gateways' clients. */
export const cacheField: z.ZodType = z.looseObject({
  type: z.literal("ephemeral"),
  ttl: z.enum(["5m", "1h"]).nullish().describe("How long the cache keeps the prefix; absent: 5m"),
}).nullish().describe("Caches the prompt up to and including this place");
