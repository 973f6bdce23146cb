// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import org.pgtally.probe.MethodName;

/** The names of instrumented methods. */
final class Names {
    private Names() {
    }

    static MethodName of(TypeDescription type, MethodDescription method) {
        StringBuilder parameters = new StringBuilder();
        for (TypeDescription parameter : method.getParameters().asTypeList().asErasures()) {
            String name = parameter.getActualName();
            parameters.append(parameters.length() == 0 ? "" : ",").append(name.substring(name.lastIndexOf('.') + 1));
        }
        return MethodName.of(type.getName(), method.getName(), parameters.toString());
    }
}
