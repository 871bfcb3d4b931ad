//! The generated paths of the APIs.

use std::fmt::Write;

use domain::Function;

/// Returns a path as API Gateway expects it in an `OpenAPI` body.
fn gateway_path(path: &str) -> String {
    match path {
        Function::CATCH_ALL_PATH => "/$default".to_owned(),
        path => path.replace("{*path}", "{proxy+}"),
    }
}

/// Returns the paths of an API. Callers of a signed API sign their requests with AWS credentials.
pub(super) fn paths(functions: &[&Function], is_signed: bool) -> String {
    let mut text = String::new();
    for function in functions {
        for path in function.paths {
            let _ = writeln!(text, "          {}:", gateway_path(path));
            text.push_str("            x-amazon-apigateway-any-method:\n");
            if *path == Function::CATCH_ALL_PATH {
                text.push_str("              isDefaultRoute: true\n");
            }
            if path.ends_with("{*path}") && *path != Function::CATCH_ALL_PATH {
                text.push_str(
                    "              parameters: [{ name: proxy, in: path, required: true, schema: { type: string } }]\n",
                );
            }
            if is_signed {
                text.push_str("              security: !If [IsSigned, [{ sigv4: [] }], !Ref AWS::NoValue]\n");
            }
            text.push_str("              responses: { default: { description: What the function answers. } }\n");
            text.push_str("              x-amazon-apigateway-integration:\n");
            text.push_str("                type: aws_proxy\n");
            text.push_str("                httpMethod: POST\n");
            text.push_str("                payloadFormatVersion: \"2.0\"\n");
            // The bucket is referenced by name. A `!Ref` would be circular, because functions refer
            // to the bucket, and the bucket's CORS rule refers to the API.
            let _ = writeln!(
                text,
                "                uri: !Sub arn:${{AWS::Partition}}:apigateway:${{AWS::Region}}:lambda:path/2015-03-31/functions/\
                 arn:${{AWS::Partition}}:lambda:${{AWS::Region}}:${{AWS::AccountId}}:function:${{AWS::StackName}}-{}/invocations",
                function.name
            );
        }
    }
    text
}
