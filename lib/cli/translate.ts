/** `translate`: shows the body that an upstream would receive for a request body, and the dropped parameters. */
import { createCatalog } from "../catalog/catalog.ts";
import { type Model, modelSchema } from "../catalog/model.ts";
import type { Config } from "../config.ts";
import { GatewayError } from "../errors.ts";
import { EFFORTS, type Protocol } from "../protocols/canonical/types.ts";
import { parseBody } from "../server/parse_body.ts";
import { translateRequest } from "../request/translate_request.ts";
import { modelIssuer } from "../upstreams/prepare_attempt.ts";
import { quirkFor } from "../protocols/quirks/quirk.ts";
import { jsonText, writeErr, writeOut } from "./output.ts";
import { CLIENT_CODECS } from "../protocols/client_codecs.ts";
import type { Codec } from "../protocols/codec.ts";
import { QUIRKS } from "../protocols/quirks/mod.ts";
import { isVendorName, protocolsOf, type Vendor, type VendorName, vendorOf, VENDORS } from "../upstreams/vendors.ts";
import { UsageError } from "./arguments.ts";

/** Options of `translate`. */
export interface TranslateOptions {
  config: Config;
  from: string;
  to: string;
  vendor?: string;
  readInput: () => Promise<Uint8Array<ArrayBuffer>>;
}

/**
 * Prints the upstream's body on standard output and the dropped parameters on standard error. Returns the exit code.
 * @throws {UsageError} if a flag is wrong, before the body is read
 */
export async function translate({ config, from, to, vendor, readInput }: TranslateOptions): Promise<number> {
  const { codec, protocol, vendorName: name, vendor: facts, quirk } = translationTarget({ from, to, vendor });
  try {
    const { value } = await parseBody(await readInput());
    const catalog = createCatalog(config);
    const { body, dropped } = translateRequest(value, {
      codec,
      destinationOf(id) {
        const row = catalog.find(id) ?? anyModel(id);
        const model = row.targets[0]?.model ?? id;
        const issuer = modelIssuer(model, { name, vendor: facts, quirk });
        return { protocol, model, row, issuer, quirk: quirkFor(quirk, protocol) };
      },
    });
    writeOut(jsonText(body));
    if (dropped.length > 0) writeErr(`dropped: ${dropped.join(", ")}\n`);
    return 0;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    writeErr(`${error.status}: ${error.message}\n`);
    return 1;
  }
}

/** Returns a row for any model id. It supports everything, because nothing is known about the model. */
function anyModel(id: string): Model {
  return modelSchema.parse({
    id: id.includes("/") ? id : `any/${id}`,
    created: 0,
    context_length: 1_000_000,
    architecture: { input_modalities: ["text", "image", "file", "audio", "video"] },
    pricing: { prompt: "0", completion: "0" },
    supported_parameters:
      `temperature top_p top_k min_p top_a frequency_penalty presence_penalty repetition_penalty max_tokens logit_bias
      logprobs top_logprobs seed stop tools tool_choice parallel_tool_calls response_format structured_outputs
      reasoning`.split(/\s+/),
    reasoning: { modes: ["manual", "adaptive"], efforts: [...EFFORTS] },
    targets: [{ upstream: "any", model: id }],
  });
}

const DEFAULT_VENDORS: Readonly<Record<Protocol, VendorName>> = {
  chat: "openai-compatible",
  responses: "openai",
  messages: "anthropic",
  gemini: "gemini",
};

/** The protocol of a client, and the vendor and protocol that its requests are translated to. */
interface TranslationTarget {
  /** Codec of the client's protocol. */
  codec: Codec;
  protocol: Protocol;
  vendorName: VendorName;
  vendor: Vendor;
  quirk: typeof QUIRKS[VendorName];
}

/** Looks up the names. @throws {UsageError} if a name is unknown or the vendor lacks the protocol */
function translationTarget(
  { from, to, vendor }: { from: string; to: string; vendor: string | undefined },
): TranslationTarget {
  if (!Object.hasOwn(CLIENT_CODECS, from)) {
    throw new UsageError(`Unknown protocol "${from}" of --from; known: ${Object.keys(CLIENT_CODECS).join(", ")}`);
  }
  if (!Object.hasOwn(DEFAULT_VENDORS, to)) {
    throw new UsageError(`Unknown protocol "${to}" of --to; known: ${Object.keys(DEFAULT_VENDORS).join(", ")}`);
  }
  const protocol = to as Protocol;
  const name = vendor ?? DEFAULT_VENDORS[protocol];
  if (!isVendorName(name)) {
    throw new UsageError(`Unknown vendor "${name}"; known: ${Object.keys(VENDORS).join(", ")}`);
  }
  const known: Vendor = vendorOf(name);
  const supported = protocolsOf(known);
  if (!supported.includes(protocol)) {
    throw new UsageError(`Vendor "${name}" does not support protocol "${to}"; it supports: ${supported.join(", ")}`);
  }
  return { codec: CLIENT_CODECS[from as Protocol], protocol, vendorName: name, vendor: known, quirk: QUIRKS[name] };
}
