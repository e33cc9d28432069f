/** `translate`: shows what an upstream would be sent for a request body, and what would be lost. */
import { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import { createCatalog } from "../catalog/catalog.ts";
import type { Config } from "../config.ts";
import { GatewayError } from "../errors.ts";
import { parseBody } from "../server/body.ts";
import { checkModelRules } from "../request/rules.ts";
import { checkBody } from "../protocols/fields.ts";
import { modelIssuer } from "../upstreams/http_upstream_options.ts";
import { quirkFor } from "../protocols/quirks/quirk.ts";
import { translatePrompt } from "../upstreams/translation_attempt.ts";
import { anyModel } from "./any_model.ts";
import { writeErr, writeOut } from "./output.ts";
import { translationTarget } from "./translation_target.ts";

/** Options of `translate`. */
export interface TranslateOptions {
  config: Config;
  from: string;
  to: string;
  vendor?: string;
  /** The request body. */
  bytes: Uint8Array<ArrayBuffer>;
}

/** Prints the upstream's body on standard output and the named losses on standard error. Returns the exit code. */
export async function translate({ config, from, to, vendor, bytes }: TranslateOptions): Promise<number> {
  const target = translationTarget({ from, to, vendor });
  if (typeof target === "string") return fail(target);
  const { codec, protocol, vendorName: name, vendor: known, quirk } = target;
  try {
    const { value: body } = await parseBody(bytes);
    checkBody(codec.schema, body);
    const asked = codec.readPrompt(body);
    const row = createCatalog(config).find(asked.model) ?? anyModel(asked.model);
    const dropped = new UnsupportedParameters({ prompt: asked, request: body });
    const prompt = checkModelRules(asked, row, dropped);
    const model = row.targets[0]?.model ?? asked.model;
    const written = translatePrompt(prompt, {
      protocol,
      model,
      row,
      issuer: modelIssuer(model, { name, vendor: known, quirk }),
      quirk: quirkFor(quirk, protocol),
      dropped,
    });
    writeOut(`${JSON.stringify(written.body, null, 2)}\n`);
    if (dropped.names.length > 0) writeErr(`dropped: ${dropped.names.join(", ")}\n`);
    return 0;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return fail(`${error.status}: ${error.message}`);
  }
}

function fail(message: string): number {
  writeErr(`${message}\n`);
  return 1;
}
