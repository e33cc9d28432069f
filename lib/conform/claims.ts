/** The claims about a gateway that the suite checks, and why they matter to clients. */
import { type Check, type CheckFunction, type Checks, type SuitePart, TEXT_PARTS } from "./check.ts";

/**
 * Lines of "id | claim | reason". A `*` after an id marks a check that needs a model that follows instructions. Ids
 * that begin with `*.` stand for all text protocols.
 */
const CLAIMS = `
models.list | The catalog is a list of models with id, object, created and owned_by | SDKs declare these types
models.unique | Every id is in the catalog once, and the model of this run is in it | Users choose a model from it
models.rich | Context length, prices and modalities are well-formed where present | Clients compute costs and choose models by them
models.one | One model can be retrieved, with the slash of its id escaped, as SDKs do | SDKs escape it
models.none | A model that does not exist is 404, in OpenAI's form | It distinguishes a wrong name from a broken gateway
models.key | A wrong key does not see the catalog: 401 | Clients test a key with it
models.native | The native catalog lists models with type, display_name and created_at | Anthropic's SDKs declare these types
models.native_one | One model can be retrieved in the native format | Anthropic's SDKs do
models.type | The catalog is application/json | SDKs choose their parser by the content type
models.request_id | The catalog has the header x-request-id | Without an id a request cannot be found in a log
models.head | HEAD answers as GET does, without a body | RFC 9110 requires it; health checks use it
models.method | Another method is 405 and names the right ones in allow | RFC 9110 requires both
models.cors | A page from a foreign origin may not read answers | Any web page in the browser of an insider could use the gateway
models.path | A path that does not exist is 404, in OpenAI's form | Clients show an HTML page as the reason
chat.whole.form | A whole answer is a chat.completion with one choice | SDKs read choices[0].message.content without checking
chat.whole.nulls | choices[0].logprobs and message.refusal are there, null where there are none | Typed clients require them
chat.whole.usage | A whole answer has a usage, and the numbers fit together | Bills and context meters rely on them
chat.whole.finish | A complete answer finishes with "stop" | Agents decide by this word whether to go on
chat.parts | A conversation of several turns, with content as parts, is accepted | Most clients do not send plain strings
chat.system | A system message is accepted, and counts in the prompt | Lost instructions are noticed late
chat.developer | A developer message is accepted, and counts in the prompt | Lost instructions are noticed late
chat.length.whole * | An answer cut by a limit finishes with "length", and keeps to it | Otherwise clients take half an answer for a whole one
chat.length.stream * | A stream cut by a limit finishes with "length" | Otherwise clients take half an answer for a whole one
chat.length.names | A limit may be called max_tokens or max_completion_tokens | Old clients know one name, new clients the other
chat.stop * | A stop sequence ends the answer with "stop" and is not part of it | Templates rely on it
chat.json.object * | response_format json_object gives a JSON object | Clients parse it without checking
chat.json.schema | response_format json_schema gives JSON that the schema allows | Clients parse it without checking
chat.json.stream | The same, streamed | Clients parse it without checking
chat.image | An image as a data URL is accepted | Images are part of the protocol
chat.stream.form | Every chunk is a chat.completion.chunk; id, created and model are the same in all | Clients group chunks by id
chat.stream.role | The first delta has role "assistant", and no other one has | SDK helpers need it once, and join repeated ones to "assistantassistant"
chat.stream.finish | There is one finish_reason, and no text or call after it | Clients close the answer at the first finish_reason
chat.stream.done | The stream ends with data: [DONE], once, and nothing after it | Clients wait for it before they consider the answer complete
chat.stream.usage | With include_usage the last chunk has the usage and no choices, and no other chunk has one | Clients cannot account for a stream without it, and count it twice with two
chat.stream.no_usage | Without include_usage no chunk is without choices | Clients that did not ask for it read choices[0] of every chunk
chat.stream.same | Whole and streamed, the same prompt has the same number of tokens, and so has the same answer | Streaming must not change the bill
chat.tools.forced | A forced tool is called, with arguments as JSON text and an id | Agents parse the arguments and reply to the id
chat.tools.finish * | An answer with calls finishes with "tool_calls" | Agents end their loop at any other value
chat.tools.required | tool_choice "required" gives a call | Clients rely on it for structured answers
chat.tools.none | tool_choice "none" gives no call | Clients that send it cannot answer one
chat.tools.parallel * | Two calls at once have ids of their own | Results are matched by them
chat.tools.back | The answer comes back with a result for each call, and the model goes on | Every agent loop does this
chat.tools.back_many * | Several results in one turn are accepted | Results of parallel calls come together
chat.tools.stream * | Streamed calls: indices from 0 without gaps; id, type and name once, at the beginning; arguments in pieces | SDK helpers put calls together by index, and duplicate what is sent twice
chat.tools.stream_finish * | A stream with calls finishes with "tool_calls" | Agents end their loop at any other value
chat.reasoning.whole | Reasoning is shown beside the text, and counted among the tokens of the completion | Reasoning tokens are billed
chat.reasoning.stream | Streamed reasoning comes before the text | Clients close the reasoning at the first piece of text
chat.reasoning.back | An answer with its reasoning and signature is accepted back | Vendors refuse a conversation whose reasoning was lost or changed
responses.whole.form | A whole answer is a response, completed, with its items | SDKs read output[].content[].text without checking
responses.whole.required | A response has every member that OpenAI's schema requires | Typed clients refuse a response without them
responses.whole.open | A response has every member that Open Responses requires | Clients built on that specification refuse a response without them
responses.whole.usage | A whole answer has a usage with both details, and the numbers fit together | Bills and context meters rely on them
responses.instructions | Instructions are accepted, count in the prompt, and are echoed | Instructions that get lost are noticed late
responses.items | A conversation of items is accepted, also an assistant's message without id and status | The interface is stateless: the history comes with every request, from many clients without ids
responses.back | The model's own output comes back as input | This is how a conversation goes on
responses.length.whole * | An answer cut by a limit is incomplete, for max_output_tokens | Otherwise clients take half an answer for a whole one
responses.length.stream * | A stream cut by a limit ends with response.incomplete | Clients wait for the last event and trust it
responses.json.schema | text.format json_schema gives JSON that the schema allows | Clients parse it without checking
responses.json.stream | The same, streamed | Clients parse it without checking
responses.image | An image as a data URL is accepted | Images are part of the protocol
responses.stream.names | Every event has an event line, equal to the type in its data | Strict parsers read the line, others the type
responses.stream.numbers | sequence_number begins with 0 and grows by 1 | Clients detect lost events by it
responses.stream.begin | The first event is response.created, once, with a response in progress | SDK helpers throw at any other first event
responses.stream.end | The last event is response.completed, once | Clients that do not see it consider the stream broken, and retry
responses.stream.done | The stream ends with data: [DONE], once, and nothing after it | Open Responses requires it
responses.stream.items | Every item is added and done once, under an output_index that counts from 0 | SDK helpers assemble items by their index
responses.stream.parts | Text comes between content_part.added and .done, and its pieces add up to the whole | SDK helpers throw at pieces of a part that was not opened
responses.stream.whole | The last event carries the whole output, as its items were done | Many clients read nothing else
responses.stream.usage | The last event has the usage | Clients read it nowhere else
responses.stream.alive | Keep-alives are comments, not events of an unknown type | SDK helpers throw at unknown types, and the Open Responses suite at keepalive
responses.stream.same | Whole and streamed, the same prompt has the same number of tokens, and so has the same answer | Streaming must not change the bill
responses.tools.forced | A forced tool is called, with arguments as JSON text and a call_id | Agents parse the arguments and reply to the call_id
responses.tools.echo | The response echoes its tools with description, parameters and strict | Clients built on Open Responses refuse it without them
responses.tools.required | tool_choice "required" gives a call | Clients rely on it for structured answers
responses.tools.none | tool_choice "none" gives no call | Clients that send it cannot answer one
responses.tools.parallel * | Two calls at once have a call_id of their own | Outputs are matched by them
responses.tools.back | The items come back with an output for each call, and the model goes on | Every agent loop does this
responses.tools.back_many * | Several outputs in one turn are accepted | Outputs of parallel calls come together
responses.tools.stream * | Streamed arguments come between the item's added and done, and their pieces add up to the whole | SDK helpers assemble calls by their index
responses.reasoning.whole | Reasoning is an item before the message, counted, with the encrypted_content that its host gave it | Without the encrypted form a stateless conversation loses its reasoning
responses.reasoning.stream | A streamed summary comes within its part, before the message | SDK helpers throw at pieces of a part that was not opened
responses.reasoning.back | A reasoning item comes back with its encrypted_content | Vendors refuse a conversation whose reasoning was lost or changed
messages.whole.form | A whole answer is a message of an assistant, with its blocks | SDKs read content[].text without checking
messages.whole.usage | A whole answer has a usage | Bills and context meters rely on it
messages.whole.stop | A complete answer stops with "end_turn" | Agents decide by this word whether to go on
messages.credential | The key may be sent as x-api-key or as a bearer | Anthropic's own SDKs use both
messages.version | anthropic-version 2026-10-21 is accepted | SDKs of version 1 and later send it
messages.beta | ?beta=true in the address changes nothing | Claude Code sends it with every request
messages.parts | A conversation of several turns, with content as blocks, is accepted | Most clients do not send plain strings
messages.system.text | A system prompt as text is accepted, and counts in the prompt | Lost instructions are noticed late
messages.system.blocks | A system prompt as blocks is accepted, and counts in the prompt | Lost instructions are noticed late
messages.length.whole * | An answer cut by a limit stops with "max_tokens", and keeps to it | Otherwise clients take half an answer for a whole one
messages.length.stream * | A stream cut by a limit stops with "max_tokens" | Otherwise clients take half an answer for a whole one
messages.stop * | A stop sequence ends the answer, is not part of it, and is named where the host tells it | Templates rely on it
messages.json.schema | output_config.format json_schema gives JSON that the schema allows | Clients parse it without checking
messages.image | An image in base64 is accepted | Images are part of the protocol
messages.count | count_tokens counts, system text and tools included | Coding agents compact their conversation by it
messages.stream.names | Every event has an event line, equal to the type in its data | Every official SDK drops an event without it
messages.stream.begin | The first event is message_start, once, with an empty message | SDK helpers throw at a second one
messages.stream.start_usage | message_start has a usage | SDK helpers crash without it, and context meters read its input_tokens
messages.stream.blocks | Blocks come one after the other from index 0, each with start, pieces and stop | SDKs lose the text of a block after a gap
messages.stream.delta | message_delta has the stop reason and the usage, after the last block | SDK helpers crash without the usage, and agents decide by the reason
messages.stream.end | The last event is message_stop, once | SDK helpers do not consider a message complete without it
messages.stream.same | Whole and streamed, the same prompt has the same number of tokens, and so has the same answer | Streaming must not change the bill
messages.tools.forced | A forced tool is called, with its input as an object and an id of letters, digits, _ and - | Agents reply to the id, and other servers refuse other characters
messages.tools.stop | An answer with calls stops with "tool_use" | Agents end their loop at any other value
messages.tools.any | tool_choice of type "any" gives a call | Clients rely on it for structured answers
messages.tools.none | tool_choice of type "none" gives no call | Clients that send it cannot answer one
messages.tools.parallel * | Two calls at once have ids of their own | Results are matched by them
messages.tools.single | disable_parallel_tool_use leaves one call | Clients that send it answer one
messages.tools.back | The answer comes back with a result for each call, and the model goes on | Every agent loop does this
messages.tools.failed | A result may be an error (is_error) | Tools fail
messages.tools.back_many * | Several results in one turn are accepted | Results of parallel calls come together
messages.tools.stream * | A streamed call begins with an empty input, whose JSON comes in pieces | SDKs assemble the input from the pieces alone
messages.thinking.whole | Thinking is a block before the text, with the signature that its host gave it | Without the signature it cannot come back
messages.thinking.stream | Streamed thinking that is signed has one signature_delta, right before its block stops | SDKs use the last one as the signature of the block
messages.thinking.back | Thinking comes back with its signature | Vendors refuse a conversation whose thinking was lost or changed
gemini.models | The catalog lists models as "models/" and the id, with their methods | Google's SDKs choose a model by its methods
gemini.model | One model can be retrieved | Google's SDKs do
gemini.whole.form | A whole answer has one candidate of the model, with parts, modelVersion and responseId | SDKs read candidates[0].content.parts without checking
gemini.whole.usage | A whole answer has usageMetadata, and the numbers fit together | Bills and context meters rely on it
gemini.whole.finish | A complete answer finishes with "STOP" | Agents decide by this word whether to go on
gemini.key | The key may be sent as x-goog-api-key or as key in the address | Google's examples use the one, its SDKs the other
gemini.spelling | Members may be in snake case | Google's examples for curl send system_instruction
gemini.parts | A conversation of several turns, with several parts, is accepted | Most clients do not send single texts
gemini.system | systemInstruction is accepted, and counts in the prompt | Lost instructions are noticed late
gemini.length.whole * | An answer cut by a limit finishes with "MAX_TOKENS", and keeps to it | Otherwise clients take half an answer for a whole one
gemini.length.stream * | A stream cut by a limit finishes with "MAX_TOKENS" | Otherwise clients take half an answer for a whole one
gemini.stop * | A stop sequence ends the answer with "STOP" and is not part of it | Templates rely on it
gemini.json.schema | responseJsonSchema gives JSON that the schema allows | Clients parse it without checking
gemini.json.stream | The same, streamed | Clients parse it without checking
gemini.image | An image in base64 is accepted | Images are part of the protocol
gemini.count | countTokens counts, systemInstruction and tools included | Agents shorten their conversation by it
gemini.stream.bare | Events have no event line, and none is [DONE] | SDKs parse every event as an answer
gemini.stream.content | Every candidate has content with parts | Chats of Google's SDKs forget an answer that has a piece without content
gemini.stream.finish | The last event has the finishReason, and no other has one | Clients close the answer at the finishReason
gemini.stream.usage | The last event has usageMetadata | Clients read the last one
gemini.stream.array | Without alt=sse a stream is a JSON array | Clients of Google's REST interface read it so
gemini.stream.same | Whole and streamed, the same prompt has the same number of tokens, and so has the same answer | Streaming must not change the bill
gemini.tools.forced | A tool forced by allowedFunctionNames is called, with args as an object | Agents read the args without checking
gemini.tools.required | The mode "ANY" gives a call | Clients rely on it for structured answers
gemini.tools.none | The mode "NONE" gives no call | Clients that send it cannot answer one
gemini.tools.parallel * | Two calls at once come as two parts, with ids of their own or none | Results are matched by ids, or by order
gemini.tools.back | The content comes back with a result for each call, and the model goes on | Every agent loop does this
gemini.tools.back_many * | Several results in one turn are accepted | Results of parallel calls come together
gemini.tools.stream * | A streamed call comes whole, in one part | SDKs do not assemble calls
gemini.thoughts.whole | Thoughts come before the text, marked, and are counted apart from it | Clients show unmarked thoughts as the answer
gemini.thoughts.stream | Streamed thoughts come before the text | Clients close the thoughts at the first piece of text
gemini.thoughts.back | An answer comes back with its thoughts and signatures | Vendors refuse a conversation whose signatures were lost or changed
*.whole.type | A whole answer is application/json | SDKs choose their parser by the content type
*.whole.request_id | A whole answer has the header x-request-id (request-id in messages) | Without an id a request cannot be found in a log
*.stream.type | A stream is text/event-stream | Strict clients read nothing else
*.stream.cache | A stream may not be cached | A cache on the way would hold the events back, or serve them to others
*.stream.buffering | A stream asks proxies not to buffer it (x-accel-buffering: no) | Otherwise nginx and similar proxies hold events back
*.stream.request_id | A stream has the header x-request-id (request-id in messages) | Without an id a request cannot be found in a log
*.stream.lines | Events are lines that strict clients read: a space after the colon, LF, one data line, a blank line | Otherwise clients that look for 'data: ' or split at LF LF lose events
*.error.key | A wrong key is 401, in the protocol's form, and is not repeated in the answer | Clients can only explain an error whose form they know
*.error.no_key | A missing key is 401, in the protocol's form | Anything else is unprotected, or an error that no client understands
*.error.request_id | An error has the header x-request-id (request-id in messages) | Errors are looked up in the log by it
*.error.model | A model that does not exist is 404 (400 in responses), in the protocol's form | Clients retry 5xx and 429; retrying this is useless
*.error.early | An error before a stream begins is a plain answer: its status, and JSON | SDKs read no errors out of a stream that has status 200
*.error.json | A body that is not JSON is 400, in the protocol's form | A crash or an empty answer would be retried
*.error.member | A body without a required member is 400, in the protocol's form | 422 and 500 are other classes of errors for every SDK
*.error.large | A body of 34 MiB is 413, in the protocol's form | Without a limit, any client can exhaust the memory
*.error.method | Another method is 405 and names the right one in allow | RFC 9110 requires both
*.unknown | An unknown member does no harm | Newer clients send more than a gateway knows
*.known | Official members without an effect here are accepted | SDKs and agents send them by default
*.disconnect | After a client disconnects in the middle of a stream, the next request is answered | Abandoned streams must not keep slots, connections or locks
images.whole | An image is made, and comes in base64 | SDKs read data[0].b64_json without checking
images.usage | An image has a usage, and the numbers fit together | Bills rely on them
images.request_id | An image has the header x-request-id | Without an id a request cannot be found in a log
images.stream | A streamed image ends with image_generation.completed, with image and usage | Clients wait for it
images.edit | An image is edited: multipart/form-data with a file | This is how SDKs send it
images.error.key | A wrong key is 401, in OpenAI's form | Clients retry anything else, and may pay for it
images.error.model | A model that does not exist is 404 (or 400), in OpenAI's form | Clients retry anything else, and may pay for it
images.error.size | A size that no model has is 400, in OpenAI's form | Clients retry anything else, and may pay for it
embeddings.whole | The answer is a list with one vector for each input, in order, all of one length | Vector stores keep them by their place
embeddings.similar | Texts with the same meaning are closer than others | Retrieval finds nothing otherwise
embeddings.base64 | encoding_format base64 gives the same vectors as little-endian 32-bit floats | The npm package openai asks for it by default
embeddings.tokens | Inputs given as tokens are accepted | LangChain for Python sends tokens
embeddings.usage | An answer has a usage, and the numbers fit together | Bills rely on them
embeddings.request_id | An answer has the header x-request-id | Without an id a request cannot be found in a log
embeddings.error.key | A wrong key is 401, in OpenAI's form | Clients retry anything else
embeddings.error.model | A model that does not exist is 404 (or 400), in OpenAI's form | Clients retry anything else
embeddings.error.empty | A request without any input is 400, in OpenAI's form | Clients retry anything else
embeddings.error.language | A language model is refused with 400 (or 404), in OpenAI's form | Its vectors would be of no use
rerank.whole | The results name each document once, by its index | Clients look up the documents by it
rerank.order | The results come in the order of their scores, the best first | Clients take the first ones
rerank.top_n | top_n limits the results | Clients pass all of them on to a model
rerank.error.key | A wrong key is 401, in OpenAI's form | Clients retry anything else
rerank.error.model | A model that does not exist is 404 (or 400), in OpenAI's form | Clients retry anything else
`;

const ROWS = CLAIMS.trim().split("\n").map((line) => line.split(" | "));

/**
 * Joins the claims of a part with their functions, in the order of the table.
 * @throws {Error} if a claim has no function, or a function no claim
 */
export function checksOf(part: SuitePart, functions: Checks): Check[] {
  const unused = new Map<string, CheckFunction>(Object.entries(functions));
  const own = ROWS.filter(([id = ""]) => id.startsWith(`${part}.`));
  const isText = TEXT_PARTS.some((protocol) => protocol === part);
  const shared = isText ? ROWS.filter(([id = ""]) => id.startsWith("*.")) : [];
  const checks = [...own, ...shared].map(([marked = "", title = "", why = ""]): Check => {
    const name = marked.replace(/ \*$/, "").replace(/^[^.]*\./, "");
    const run = unused.get(name);
    if (run === undefined) throw new Error(`There is no check "${part}.${name}"`);
    unused.delete(name);
    return { id: `${part}.${name}`, part, title, why, ...(marked.endsWith(" *") && { instructed: true }), run };
  });
  if (unused.size > 0) throw new Error(`There is no claim for ${part}: ${[...unused.keys()].join(", ")}`);
  return checks;
}
