"""Who may do what at a Kubernetes API server."""

from kube_store import Refused

RBAC = "rbac.authorization.k8s.io/v1"


class Access:
    """Who may do what: the rules given with a token, and the roles bound to its user."""

    def __init__(self, store, tokens):
        self.store, self.tokens = store, tokens

    def user(self, request):
        if not self.tokens:
            return {"user": "anybody", "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if not scheme:
            return {"user": "system:anonymous"}
        if token not in self.tokens:
            raise Refused(401, "Unauthorized", "Unauthorized")
        return self.tokens[token]

    def allows(self, user, needs):
        rules = [*user.get("rules", []), *self._bound(user["user"], needs["namespace"])]
        return any(rule_allows(rule, needs) for rule in rules)

    def check(self, user, needs):
        if self.allows(user, needs):
            return
        what = needs["resource"] + (f' "{needs["name"]}"' if needs["name"] else "")
        where = f'in the namespace "{needs["namespace"]}"' if needs["namespace"] else "at the cluster scope"
        who = f'User "{user["user"]}" cannot {needs["verb"]} resource "{needs["resource"]}"'
        raise Refused(403, "Forbidden", f'{what} is forbidden: {who} in API group "{needs["group"]}" {where}')

    def _bound(self, user, namespace):
        in_namespace = self.store.objects[RBAC, "rolebindings"].values()
        bindings = [*self.store.objects[RBAC, "clusterrolebindings"].values()]
        bindings += [b for b in in_namespace if namespace and b["metadata"]["namespace"] == namespace]
        for binding in bindings:
            subjects = [self._name(s) for s in binding.get("subjects") or []]
            local = binding["roleRef"]["kind"] == "Role"
            key = (namespace if local else None, binding["roleRef"]["name"])
            role = self.store.objects[RBAC, "roles" if local else "clusterroles"].get(key)
            if user in subjects and role:
                yield from role.get("rules") or []

    @staticmethod
    def _name(subject):
        if subject["kind"] != "ServiceAccount":
            return subject["name"]
        return f"system:serviceaccount:{subject['namespace']}:{subject['name']}"


def rule_allows(rule, needs):
    def covers(key, value):
        return {"*", value} & set(rule.get(key, []))

    named = not rule.get("resourceNames") or needs["name"] in rule["resourceNames"]
    asked = {"apiGroups": needs["group"], "resources": needs["resource"], "verbs": needs["verb"]}
    return named and all(covers(key, value) for key, value in asked.items())
