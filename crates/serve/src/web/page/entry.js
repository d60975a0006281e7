// The way in: a token for a cookie that scripts cannot read. The token stays in the memory of this script and nowhere
// else, so that a server that was started anew, which knows no cookie of before, can be shown it again.

let known = null, asking = null;

const hand = (token) => fetch("/login", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ token }) });

// Logs in; a token that is good is remembered.
export const logIn = async (token) => {
  const answer = await hand(token);
  if (answer.ok) known = token;
  return answer;
};

// Logs in once more, for all who ask at the same time; says whether that went well. Fails when the server is away.
export const again = () => asking ??= (async () => {
  try {
    if (known === null) return false;
    const { ok, status } = await hand(known);
    if (!ok && status !== 403) throw new Error("not now");
    if (!ok) known = null;
    return ok;
  } finally { asking = null; }
})();
