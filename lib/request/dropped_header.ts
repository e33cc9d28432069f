/** The response header that names what was not passed on. */
import type { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import type { AnswerHeader } from "../server/router.ts";

/** Most characters of the header: names of unknown members are the client's own words. */
const MOST = 2_000;

/** `x-sluice-dropped`, or no header where nothing was dropped. What a header cannot hold is written as in an address. */
export function droppedHeader({ names }: UnsupportedParameters): AnswerHeader[] {
  if (names.length === 0) return [];
  let value = "";
  for (const name of names) {
    const next = name.toWellFormed().replace(/[^\x21-\x24\x26-\x2b\x2d-\x7e]/gu, encodeURIComponent);
    if (value.length + next.length > MOST) return [["x-sluice-dropped", `${value}${value === "" ? "" : ", "}...`]];
    value += value === "" ? next : `, ${next}`;
  }
  return [["x-sluice-dropped", value]];
}
