// deno-lint-ignore-file explicit-module-boundary-types no-console -- a program for Node, without types
/** Shared by the programs for SDKs: the gateways to call, and the report of results as lines of JSON. */

/** The gateways: `url`, `key`, and the `model` to ask for. */
export const ROUTES = JSON.parse(process.env.SLUICE_ROUTES ?? "[]");

/** A PNG of 2 x 2 pixels, in base64. */
export const PNG = process.env.SLUICE_PNG ?? "";

/** The echo model's answer to two of them. */
export const TWO_IMAGES = "Two.\n[image 2x2 png]\n[image 2x2 png]";

/** The questions of a conversation, each of which makes the echo model call `clock`, and the answers. */
export const QUESTIONS = [
  ['Now.\ncall:clock {"zone":"Oslo"}', "Noon in Oslo"],
  ['Later.\ncall:clock {"zone":"Rome"}\ncall:clock {"zone":"Bern"}', "Noon in Rome\nNoon in Bern"],
];

/** A prompt with an answer so slow that a client leaves in the middle. */
export const SLOW = "pace:300ms\none two three four five six seven eight nine ten eleven twelve";

/** Parameters of the tool `clock`. */
export const ZONE = {
  type: "object",
  properties: { zone: { type: "string" } },
  required: ["zone"],
  additionalProperties: false,
};

/** The tool. */
export function clock({ zone }) {
  return `Noon in ${zone}`;
}

/** @throws unless both values are the same */
export function expect(actual, expected) {
  const [got, wanted] = [actual, expected].map((value) => JSON.stringify(value));
  if (got !== wanted) throw new Error(`got ${got}, not ${wanted}`);
}

/** Runs the checks of a client over every route, and reports each. */
export async function runChecks(client, makeChecks) {
  for (const route of ROUTES) {
    for (const [check, run] of Object.entries(makeChecks(route))) {
      let failure = null;
      try {
        await run();
      } catch (error) {
        failure = String(error?.stack ?? error).slice(0, 1500);
      }
      console.log(JSON.stringify({ client, model: route.model, check, failure }));
    }
  }
}
