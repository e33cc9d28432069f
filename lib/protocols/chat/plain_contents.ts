/**
 * The plain forms of chat messages and tools, which are relayed without being decoded: texts, images, calls of
 * functions and their results. They accept less than the schema, so what they accept needs no further check, as
 * tests/protocols/plain_contents_test.ts shows.
 */
import { shapes } from "../../json/mod.ts";
import { cacheMark, type PlainContents } from "../plain_contents.ts";
import { COUNTS } from "../fields.ts";

const { boolean, either, idText, imageUrl, list, nameText, nullable, object, readObject, readText, words } = shapes;

const DETAILS = ["auto", "low", "high", "original"];
const image = object({ url: imageUrl, detail: nullable(words(...DETAILS)) }, [
  `url ?detail=null ${DETAILS.map((detail) => `?detail=${detail}`).join(" ")}`,
]);
const parts = list(
  object({ type: words("text", "image_url"), text: readText, image_url: image, cache_control: cacheMark }, [
    "type=text text ?cache_control ?cache_control=null",
    "image: type=image_url image_url ?cache_control ?cache_control=null",
  ]),
  { max: COUNTS.parts },
);
const call = object({
  id: idText(Infinity),
  type: words("function"),
  function: object({ name: nameText(256, { isName: false }), arguments: readText }, ["name arguments"]),
}, ["id type function"]);

const MARK = "?cache_control ?cache_control=null";
const CALLS = "?tool_calls ?tool_calls=null";
const REASONING = "?reasoning_content ?reasoning_content=null ?reasoning ?reasoning=null";

const message = object({
  role: words("system", "developer", "user", "assistant", "tool"),
  content: nullable(either(readText, parts)),
  name: nullable(readText),
  tool_call_id: idText(Infinity),
  tool_calls: nullable(list(call, { max: COUNTS.parts })),
  refusal: nullable(readText),
  reasoning_content: nullable(readText),
  reasoning: nullable(readText),
  cache_control: cacheMark,
}, [
  `role=system content ${MARK}`,
  `role=user content ${MARK}`,
  `role=user content=list ?content=image ${MARK}`,
  `role=assistant ?content ?content=null ${CALLS} ${REASONING} ${MARK}`,
  `role=tool tool_call_id content ${MARK}`,
], {
  // Servers that follow an older API get these in another form; see ../quirks/compatible.ts.
  rare: [
    ...["system", "developer", "user"].flatMap((role) =>
      ["content", "content=list"].map((content) => `role=${role} ${content} ?name ?name=null ${MARK}`)
    ),
    `role=assistant ?content ?content=list ?content=null ${CALLS} ${REASONING} ?name ?name=null ?refusal ?refusal=null ${MARK}`,
    `role=tool tool_call_id content=list ${MARK}`,
  ],
});

const tool = object({
  type: words("function"),
  function: object({
    name: nameText(128, { isName: true }),
    description: nullable(readText),
    parameters: nullable(readObject),
    strict: nullable(boolean),
  }, ["name ?description ?description=null ?parameters ?parameters=null ?strict ?strict=null"]),
  cache_control: cacheMark,
}, ["type function ?cache_control ?cache_control=null"]);

/** The plain contents of a chat request. */
export const plainContents: PlainContents = {
  shapes: new Map([
    ["messages", list(message, { min: 1, max: COUNTS.messages })],
    ["tools", list(tool, { max: COUNTS.tools })],
  ]),
  needed: ["messages"],
  maxMarks: Infinity,
  maxImages: COUNTS.images,
};
